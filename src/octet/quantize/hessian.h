// The Hessian of one matrix's rounding error, H = (2 / N) * sum over N rows x of x x^T, from what
// the matrix is multiplied with. Not for solving (hessian_factor.h). Invariant: float32 products
// over at most kBatchRows rows are added up in float64, so sums depend on the order of the rows
// alone, never on threads.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/tensor/rows.h"

namespace octet {

class Hessian {
 public:
  explicit Hessian(int64_t cols);

  int64_t cols() const { return cols_; }
  int64_t rows() const { return rows_; }

  /// x [any, cols]; `ops` multiplies.
  void add(ConstRows x, Ops& ops);

  /// Adds what another one has seen.
  void add(Hessian other, Ops& ops);

  /// [cols, cols], symmetric: both triangles are filled. Leaves nothing behind. All zero when no
  /// row was seen.
  std::vector<double> take_mean(Ops& ops);

 private:
  static constexpr int64_t kBatchRows = 256;

  void flush(Ops& ops);
  void add_strip(int64_t begin, int64_t width, Ops& ops);

  int64_t cols_ = 0;
  int64_t rows_ = 0;
  int64_t pending_ = 0;       // rows in the batch
  std::vector<float> batch_;  // [cols, kBatchRows]: the transposed rows
  std::vector<double> sums_;  // [cols, cols], the upper triangle
};

}  // namespace octet
