// A cache-line aligned float buffer that only grows: working memory that operations keep between
// calls. Not for results that outlive an operation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace octet::cpu {

class Scratch {
 public:
  /// At least `count` floats with undefined contents (zero when new). Earlier pointers become
  /// invalid when it grows.
  float* floats(int64_t count) {
    if (count > capacity_) {
      data_.reset();
      data_.reset(new (std::align_val_t{kAlignment}) float[static_cast<size_t>(count)]());
      capacity_ = count;
    }
    return data_.get();
  }

  float* data() const { return data_.get(); }
  int64_t bytes() const { return capacity_ * static_cast<int64_t>(sizeof(float)); }

 private:
  static constexpr size_t kAlignment = 64;
  struct Deleter {
    void operator()(float* data) const { ::operator delete[](data, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<float, Deleter> data_;
  int64_t capacity_ = 0;
};

}  // namespace octet::cpu
