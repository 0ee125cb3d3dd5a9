// Scratch for the activations of one forward: a row-major matrix whose memory is kept from call to
// call. Not for results that outlive a forward. Memory only grows; its content is undefined after
// resize().
#pragma once

#include <cstdint>
#include <vector>

#include "octet/tensor/rows.h"

namespace octet {

class RowBuffer {
 public:
  Rows resize(int64_t rows, int64_t cols) {
    const auto needed = static_cast<size_t>(rows * cols);
    if (storage_.size() < needed) {
      storage_.resize(needed);
    }
    rows_ = {storage_.data(), rows, cols, cols};
    return rows_;
  }

  Rows rows() const { return rows_; }
  int64_t bytes() const { return static_cast<int64_t>(storage_.capacity() * sizeof(float)); }

 private:
  std::vector<float> storage_;
  Rows rows_;
};

}  // namespace octet
