// Views of row-major float matrices; the row is contiguous, rows are `stride` floats apart.
#pragma once

#include <cstdint>

namespace octet {

struct Rows {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  float* row(int64_t r) const { return data + r * stride; }
  Rows slice(int64_t first, int64_t count) const {
    return {data + first * stride, count, cols, stride};
  }
};

struct ConstRows {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  ConstRows() = default;
  ConstRows(const float* d, int64_t r, int64_t c, int64_t s)
      : data(d), rows(r), cols(c), stride(s) {}
  ConstRows(const Rows& x)  // NOLINT(google-explicit-constructor): adding const
      : data(x.data), rows(x.rows), cols(x.cols), stride(x.stride) {}

  const float* row(int64_t r) const { return data + r * stride; }
  ConstRows slice(int64_t first, int64_t count) const {
    return {data + first * stride, count, cols, stride};
  }
};

}  // namespace octet
