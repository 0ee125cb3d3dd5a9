#include "octet/quantize/hessian_factor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "octet/base/check.h"
#include "octet/base/divide_up.h"

namespace octet {
namespace {

/// Columns that are eliminated together: their rows stay in the cache.
constexpr int64_t kPanel = 64;
/// Columns of the rest that one pass over such a panel changes.
constexpr int64_t kStrip = 256;
/// Rows of the inverse that a thread has at work.
constexpr int64_t kInverseRows = 8;

std::span<double> span_of(double* row, int64_t begin, int64_t end) {
  return {row + begin, static_cast<size_t>(end - begin)};
}

}  // namespace

void subtract_multiples(
    std::span<double> to, std::span<const double> factors, const double* rows, int64_t stride
) {
  constexpr size_t kUnroll = 4;
  size_t i = 0;
  double* const __restrict out = to.data();
  for (; i + kUnroll <= factors.size(); i += kUnroll) {
    const double* const r0 = rows + static_cast<int64_t>(i) * stride;
    const double* const r1 = r0 + stride;
    const double* const r2 = r1 + stride;
    const double* const r3 = r2 + stride;
    const double f0 = factors[i];
    const double f1 = factors[i + 1];
    const double f2 = factors[i + 2];
    const double f3 = factors[i + 3];
    for (size_t k = 0; k < to.size(); ++k) {
      out[k] = (((out[k] - f0 * r0[k]) - f1 * r1[k]) - f2 * r2[k]) - f3 * r3[k];
    }
  }
  for (; i < factors.size(); ++i) {
    const double* const row = rows + static_cast<int64_t>(i) * stride;
    const double factor = factors[i];
    for (size_t k = 0; k < to.size(); ++k) {
      out[k] -= factor * row[k];
    }
  }
}

HessianFactor::HessianFactor(
    std::vector<double> hessian, std::span<const char> dead, ThreadPool& pool
)
    : n_(static_cast<int64_t>(dead.size())), matrix_(std::move(hessian)) {
  OCTET_CHECK(static_cast<int64_t>(matrix_.size()) == n_ * n_);
  damp(dead);
  if (factor(pool)) {
    invert(pool);
    return;
  }
  identity_ = true;
  std::fill(matrix_.begin(), matrix_.end(), 0.0);
  for (int64_t i = 0; i < n_; ++i) {
    mutable_row(i)[i] = 1.0;
  }
}

void HessianFactor::damp(std::span<const char> dead) {
  double sum = 0.0;
  for (int64_t i = 0; i < n_; ++i) {
    double* row = mutable_row(i);
    for (int64_t j = i; j < n_; ++j) {
      if (dead[static_cast<size_t>(i)] != 0 || dead[static_cast<size_t>(j)] != 0) {
        row[j] = i == j ? 1.0 : 0.0;
      }
    }
    sum += row[i];
  }
  const double damping = kDamping * sum / static_cast<double>(n_);
  for (int64_t i = 0; i < n_; ++i) {
    mutable_row(i)[i] += damping;
  }
}

/// H = R R^T with R upper triangular, in place: the Cholesky factorisation from the last column to
/// the first. Then U = R^-1, because R^-T R^-1 = H^-1. False when H is not positive definite.
bool HessianFactor::factor(ThreadPool& pool) {
  std::vector<double> transposed(static_cast<size_t>(kPanel * n_));  // [columns of the panel, n]
  for (int64_t end = n_; end > 0;) {
    const int64_t begin = (end - 1) / kPanel * kPanel;
    if (!factor_corner(begin, end)) {
      return false;
    }
    pool.for_ranges(begin, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        solve_row(i, begin, end, transposed.data());
      }
    });
    // Rows further down have less left to change: one from each end makes pairs of equal work.
    const int64_t blocks = divide_up(begin, kPanel);
    pool.for_ranges(divide_up(blocks, 2), 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        subtract_panel(block * kPanel, begin, end, transposed.data());
        if (blocks - 1 - block != block) {
          subtract_panel((blocks - 1 - block) * kPanel, begin, end, transposed.data());
        }
      }
    });
    end = begin;
  }
  return true;
}

/// The rows [begin, end) of the panel itself.
bool HessianFactor::factor_corner(int64_t begin, int64_t end) {
  for (int64_t j = end - 1; j >= begin; --j) {
    double* pivot = mutable_row(j);
    for (int64_t k = j + 1; k < end; ++k) {
      pivot[j] -= pivot[k] * pivot[k];
    }
    if (!(pivot[j] > 0.0) || !std::isfinite(pivot[j])) {
      return false;
    }
    pivot[j] = std::sqrt(pivot[j]);
    for (int64_t i = begin; i < j; ++i) {
      double* row = mutable_row(i);
      for (int64_t k = j + 1; k < end; ++k) {
        row[j] -= row[k] * pivot[k];
      }
      row[j] /= pivot[j];
    }
  }
  return true;
}

/// R[i, j] of a row above the panel, and its place in the transposed copy.
void HessianFactor::solve_row(int64_t i, int64_t begin, int64_t end, double* transposed) {
  double* row = mutable_row(i);
  for (int64_t j = end - 1; j >= begin; --j) {
    const double* pivot = mutable_row(j);
    for (int64_t k = j + 1; k < end; ++k) {
      row[j] -= row[k] * pivot[k];
    }
    row[j] /= pivot[j];
    transposed[(j - begin) * n_ + i] = row[j];
  }
}

/// What the panel takes from a block of rows: H[i, j] -= sum over its columns k of R[i, k] R[j, k].
void HessianFactor::subtract_panel(
    int64_t first_row, int64_t begin, int64_t end, const double* transposed
) {
  const int64_t last_row = std::min(first_row + kPanel, begin);
  for (int64_t strip = first_row; strip < begin; strip += kStrip) {
    const int64_t strip_end = std::min(strip + kStrip, begin);
    for (int64_t i = first_row; i < last_row; ++i) {
      double* row = mutable_row(i);
      const int64_t from = std::max(strip, i);
      if (from < strip_end) {
        subtract_multiples(
            span_of(row, from, strip_end), span_of(row, begin, end), transposed + from, n_
        );
      }
    }
  }
}

/// U = R^-1, row by row from u R = e_i: row i of U needs the rows of R from i on, so rows that are
/// done may take the place of theirs.
void HessianFactor::invert(ThreadPool& pool) {
  const int64_t block = kInverseRows * pool.threads();
  std::vector<double> rows(static_cast<size_t>(block * n_));
  for (int64_t first = 0; first < n_; first += block) {
    const int64_t count = std::min(block, n_ - first);
    std::fill(rows.begin(), rows.end(), 0.0);
    pool.for_ranges(count, kInverseRows, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        rows[static_cast<size_t>(r * n_ + first + r)] = 1.0;
      }
      for (int64_t panel = first / kPanel * kPanel; panel < n_; panel += kPanel) {
        for (int64_t r = begin; r < end; ++r) {
          solve_inverse(rows.data() + r * n_, panel);
        }
      }
    });
    for (int64_t r = 0; r < count; ++r) {
      const double* from = rows.data() + r * n_;
      std::copy(from, from + n_, mutable_row(first + r));
    }
  }
}

/// Solves for the elements of `u` in one panel and takes their part from the elements after it.
/// Zeros before the row's own column stay zeros.
void HessianFactor::solve_inverse(double* u, int64_t panel) {
  const int64_t end = std::min(panel + kPanel, n_);
  for (int64_t k = panel; k < end; ++k) {
    const double* row = mutable_row(k);
    if (u[k] != 0.0) {
      u[k] /= row[k];
      for (int64_t j = k + 1; j < end; ++j) {
        u[j] -= u[k] * row[j];
      }
    }
  }
  if (end < n_) {
    subtract_multiples(span_of(u, end, n_), span_of(u, panel, end), mutable_row(panel) + end, n_);
  }
}

}  // namespace octet
