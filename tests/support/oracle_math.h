// Plain float64 building blocks of the naive forward passes (oracle_gemma4.h, oracle_dflash.h):
// written from the equations, no vectorisation, no cache, nothing shared with the product except
// the decoding of stored weights, which has its own oracle.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/tensor/checkpoint.h"

namespace octet::test::oracle {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // rows

inline Matrix matrix(const Checkpoint& checkpoint, const std::string& name) {
  const LogicalTensor& tensor = checkpoint.at(name);
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  decode_rows(tensor, 0, tensor.rows(), values.data());
  Matrix out;
  const auto cols = static_cast<size_t>(tensor.cols());
  for (size_t r = 0; r < static_cast<size_t>(tensor.rows()); ++r) {
    out.emplace_back(values.begin() + r * cols, values.begin() + (r + 1) * cols);
  }
  return out;
}

inline Vector vector(const Checkpoint& checkpoint, const std::string& name) {
  return matrix(checkpoint, name).at(0);
}

inline Vector product(const Matrix& w, const Vector& x) {
  Vector out;
  for (const Vector& row : w) {
    double sum = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      sum += row[i] * x[i];
    }
    out.push_back(sum);
  }
  return out;
}

/// x / sqrt(mean(x^2) + eps) * w over [begin, begin + width); an empty w is all ones.
inline void rms(Vector& x, size_t begin, size_t width, const Vector& w, double eps) {
  double sum = 0.0;
  for (size_t i = 0; i < width; ++i) {
    sum += x[begin + i] * x[begin + i];
  }
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(width) + eps);
  for (size_t i = 0; i < width; ++i) {
    x[begin + i] *= scale * (w.empty() ? 1.0 : w[i]);
  }
}

inline Vector rms(Vector x, const Vector& w, double eps) {
  rms(x, 0, x.size(), w, eps);
  return x;
}

inline void rms_heads(Vector& x, size_t head_dim, const Vector& w, double eps) {
  for (size_t begin = 0; begin < x.size(); begin += head_dim) {
    rms(x, begin, head_dim, w, eps);
  }
}

/// Rotates element i of every head against element i + head_dim / 2 by position * frequency(i).
inline void rotate_heads(
    Vector& x, size_t head_dim, int64_t position, const std::function<double(size_t)>& frequency
) {
  const size_t half = head_dim / 2;
  for (size_t begin = 0; begin < x.size(); begin += head_dim) {
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequency(i);
      const double a = x[begin + i];
      const double b = x[begin + i + half];
      x[begin + i] = a * std::cos(angle) - b * std::sin(angle);
      x[begin + i + half] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
}

/// softmax(scale * q . k) v per query head over the keys that `visible` lets through.
inline Vector attend(
    const Vector& query,
    const std::vector<Vector>& keys,
    const std::vector<Vector>& values,
    const std::function<bool(size_t)>& visible,
    size_t head_dim,
    double scale
) {
  const size_t heads = query.size() / head_dim;
  Vector out(query.size(), 0.0);
  for (size_t h = 0; h < heads; ++h) {
    Vector scores(keys.size(), 0.0);
    double largest = -1e300;
    for (size_t t = 0; t < keys.size(); ++t) {
      if (!visible(t)) {
        continue;
      }
      const size_t kv_head = h / (query.size() / keys[t].size());
      for (size_t i = 0; i < head_dim; ++i) {
        scores[t] += scale * query[h * head_dim + i] * keys[t][kv_head * head_dim + i];
      }
      largest = std::max(largest, scores[t]);
    }
    double total = 0.0;
    for (size_t t = 0; t < keys.size(); ++t) {
      if (!visible(t)) {
        continue;
      }
      const size_t kv_head = h / (query.size() / keys[t].size());
      const double weight = std::exp(scores[t] - largest);
      total += weight;
      for (size_t i = 0; i < head_dim; ++i) {
        out[h * head_dim + i] += weight * values[t][kv_head * head_dim + i];
      }
    }
    for (size_t i = 0; i < head_dim; ++i) {
      out[h * head_dim + i] /= total;
    }
  }
  return out;
}

inline double gelu_tanh(double x) {
  const double inner = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

inline double silu(double x) {
  return x / (1.0 + std::exp(-x));
}

inline void add(Vector& x, const Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] += y[i];
  }
}

inline Vector gated(
    const Vector& gate, const Vector& up, const std::function<double(double)>& activation
) {
  Vector out;
  for (size_t i = 0; i < gate.size(); ++i) {
    out.push_back(activation(gate[i]) * up[i]);
  }
  return out;
}

}  // namespace octet::test::oracle
