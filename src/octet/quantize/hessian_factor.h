// What rounding with errors carried over needs of a Hessian: the upper triangular U with
// U^T U = (H + damping)^-1 as in GPTQ. Knows no weights but for their dead columns.
// Invariant: results do not depend on threads; memory is the one matrix [n, n] of float64, given
// and used up, and a few rows: 0.8 GB for 10,240 columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/thread_pool.h"

namespace octet {

/// to[k] -= sum over i of factors[i] * rows[i * stride + k], k < to.size(): one i after the other,
/// in order. The inner loop of all that is done with Hessians.
void subtract_multiples(
    std::span<double> to, std::span<const double> factors, const double* rows, int64_t stride
);

class HessianFactor {
 public:
  /// Share of the mean of the diagonal that is added to it.
  static constexpr double kDamping = 0.01;

  /// `hessian` [n, n], of which the upper triangle is read. dead[i] != 0: column i of the weight is
  /// zero; its row and column count as those of the identity. Where the damped matrix is not
  /// positive definite, U is the identity, which makes rounding plain.
  HessianFactor(std::vector<double> hessian, std::span<const char> dead, ThreadPool& pool);

  int64_t size() const { return n_; }
  bool is_identity() const { return identity_; }
  /// U[i, j] for j >= i; what lies before is undefined.
  const double* row(int64_t i) const { return matrix_.data() + i * n_; }

 private:
  void damp(std::span<const char> dead);
  bool factor(ThreadPool& pool);
  bool factor_corner(int64_t begin, int64_t end);
  void solve_row(int64_t i, int64_t begin, int64_t end, double* transposed);
  void subtract_panel(int64_t first_row, int64_t begin, int64_t end, const double* transposed);
  void invert(ThreadPool& pool);
  void solve_inverse(double* u, int64_t panel);
  double* mutable_row(int64_t i) { return matrix_.data() + i * n_; }

  int64_t n_ = 0;
  bool identity_ = false;
  std::vector<double> matrix_;
};

}  // namespace octet
