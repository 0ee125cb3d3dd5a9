// GPTQ in plain float64 as its definition says: Hessian, damping, and rounding one column at a time
// with all later ones corrected at once. The oracle for hessian.h, hessian_factor.h and gptq.h.
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

/// The E2M1 code nearest to v, the even one of two that are as near; the greatest for what is
/// beyond.
inline int oracle_e2m1(float v) {
  constexpr float kLevels[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};  // NOLINT
  int best = 0;
  for (int code = 1; code < 8; ++code) {
    const double nearer = std::fabs(std::fabs(static_cast<double>(v)) - kLevels[best]) -
                          std::fabs(std::fabs(static_cast<double>(v)) - kLevels[code]);
    if (nearer > 0.0 || (nearer == 0.0 && code % 2 == 0)) {
      best = code;
    }
  }
  return v < 0.0F ? best + 8 : best;
}

/// Codes of one row. scales: by group of 16, 0 for one that stays zero; u: upper factor.
inline std::vector<int> oracle_gptq_row(
    std::vector<double> row, const std::vector<float>& scales, const Matrix& u
) {
  constexpr float kLevels[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};  // NOLINT
  std::vector<int> codes;
  for (size_t i = 0; i < row.size(); ++i) {
    const float scale = scales[i / 16];
    const int code = scale == 0.0F ? 0 : oracle_e2m1(static_cast<float>(row[i]) / scale);
    const float value = kLevels[code % 8] * scale;  // in float32, as it is decoded
    const double error = (row[i] - (code >= 8 ? -value : value)) / u[i][i];
    for (size_t k = i + 1; k < row.size(); ++k) {
      row[k] -= error * u[i][k];
    }
    codes.push_back(code);
  }
  return codes;
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
