// The failure of the lowest row among those that workers meet, so that what a user reads does not
// depend on how many of them there are. Not for failures without a row.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "octet/base/error.h"

namespace octet {

class FirstFailure {
 public:
  void record(int64_t row, const Error& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_ || row < row_) {
      row_ = row;
      error_ = error;
    }
  }

  /// Throws what was recorded, naming the tensor.
  void rethrow(const std::string& tensor) {
    if (error_) {
      error_->add_context("tensor '" + tensor + "'");
      throw Error(*error_);
    }
  }

 private:
  std::mutex mutex_;
  int64_t row_ = 0;
  std::optional<Error> error_;
};

}  // namespace octet
