// Integer division that rounds up: how many pieces of a size hold a whole.
#pragma once

#include <cstdint>

namespace octet {

/// The least n with n * step >= value; value >= 0, step > 0.
constexpr int64_t divide_up(int64_t value, int64_t step) {
  return (value + step - 1) / step;
}

}  // namespace octet
