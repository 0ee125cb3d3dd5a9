// GPTQ in plain float64, matrix by matrix as its definition says: inverse, factor and rounding one
// element at a time. The oracle for hessian_factor.h and gptq.h. Not fast.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace octet::test {

using Matrix = std::vector<std::vector<double>>;

inline Matrix zeros(size_t rows, size_t cols) {
  return Matrix(rows, std::vector<double>(cols, 0.0));
}

/// (2 / N) X^T X.
inline Matrix oracle_hessian(const Matrix& x) {
  const size_t n = x.front().size();
  Matrix h = zeros(n, n);
  for (const std::vector<double>& row : x) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        h[i][j] += 2.0 * row[i] * row[j] / static_cast<double>(x.size());
      }
    }
  }
  return h;
}

/// With dead columns replaced and the share 0.01 of the mean diagonal added to it.
inline Matrix oracle_damped(Matrix h, const std::vector<char>& dead) {
  const size_t n = h.size();
  double trace = 0.0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      if (dead[i] != 0 || dead[j] != 0) {
        h[i][j] = i == j ? 1.0 : 0.0;
      }
    }
    trace += h[i][i];
  }
  for (size_t i = 0; i < n; ++i) {
    h[i][i] += 0.01 * trace / static_cast<double>(n);
  }
  return h;
}

/// tr(D H D^T).
inline double quadratic(const Matrix& d, const Matrix& h) {
  double sum = 0.0;
  for (const std::vector<double>& row : d) {
    for (size_t i = 0; i < h.size(); ++i) {
      for (size_t j = 0; j < h.size(); ++j) {
        sum += row[i] * h[i][j] * row[j];
      }
    }
  }
  return sum;
}

inline Matrix difference(const Matrix& a, const Matrix& b) {
  Matrix d = a;
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < a[r].size(); ++c) {
      d[r][c] -= b[r][c];
    }
  }
  return d;
}

}  // namespace octet::test
