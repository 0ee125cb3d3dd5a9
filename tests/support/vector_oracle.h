// Naive float64 versions of the vector operations and the small things their tests share. Written
// from the formulas of ops.h; nothing here uses octet's kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "octet/kernels/cpu/isa_table.h"
#include "octet/kernels/ops.h"

namespace octet::test {

inline std::vector<std::string> runnable_isas() {
  std::vector<std::string> names;
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    names.emplace_back(table->name);
  }
  return names;
}

inline std::unique_ptr<Ops> ops_for(const std::string& isa, int threads) {
  return make_cpu_ops({.threads = threads, .isa = isa});
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  float normal() { return normal_(engine_); }
  std::vector<float> normals(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = normal();
    }
    return values;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_;
};

/// A matrix whose rows are further apart than they are long; the gaps hold a value that must
/// survive.
class PaddedRows {
 public:
  static constexpr float kGap = 12345.0F;

  PaddedRows(int64_t rows, int64_t cols, int64_t gap = 3)
      : rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        data_(static_cast<size_t>(rows * stride_), kGap) {}

  Rows view() { return {data_.data(), rows_, cols_, stride_}; }
  ConstRows view() const { return {data_.data(), rows_, cols_, stride_}; }

  void randomize(Random& random, float size = 1.0F) {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) {
        view().row(r)[c] = size * random.normal();
      }
    }
  }
  bool gaps_intact() const {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = cols_; c < stride_; ++c) {
        if (data_[static_cast<size_t>(r * stride_ + c)] != kGap) {
          return false;
        }
      }
    }
    return true;
  }

 private:
  int64_t rows_;
  int64_t cols_;
  int64_t stride_;
  std::vector<float> data_;
};

inline bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

/// Distance of float32 numbers around x, the smallest subnormal at least.
inline double ulp(double x) {
  const int exponent = x == 0.0 ? -126 : std::max(std::ilogb(x), -126);
  return std::ldexp(1.0, exponent - 23);
}

inline double oracle_gelu(double x) {
  const double u = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(u));
}
inline double oracle_silu(double x) {
  return x / (1.0 + std::exp(-x));
}

inline std::vector<double> oracle_rms_norm(
    const float* x, const float* weight, int64_t width, double eps
) {
  double sum = 0.0;
  for (int64_t i = 0; i < width; ++i) {
    sum += static_cast<double>(x[i]) * x[i];
  }
  const double factor = 1.0 / std::sqrt(sum / static_cast<double>(width) + eps);
  std::vector<double> out;
  for (int64_t i = 0; i < width; ++i) {
    out.push_back(x[i] * factor * (weight == nullptr ? 1.0 : weight[i]));
  }
  return out;
}

inline uint16_t oracle_bf16(float x) {
  // By search among the two neighbours, not by bit arithmetic: the nearer one, the even one when
  // both are as near.
  const auto down = static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
  const auto up = static_cast<uint16_t>(down + 1);
  const auto value = [](uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
  };
  if (std::isinf(x)) {
    return down;
  }
  const double above = std::isinf(value(up)) ? std::copysign(std::ldexp(1.0, 128), x) : value(up);
  const double to_down = std::abs(x - value(down));
  const double to_up = std::abs(above - x);
  if (to_down != to_up) {
    return to_down < to_up ? down : up;
  }
  return down % 2 == 0 ? down : up;
}
inline float bf16_value(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// IEEE half precision, by its definition.
inline double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// Keys and values of one sequence, with a KvView onto them; every slot starts as NaN.
class KvStore {
 public:
  KvStore(KvType type, int64_t capacity, int kv_heads, int head_dim)
      : type_(type),
        capacity_(capacity),
        kv_heads_(kv_heads),
        head_dim_(head_dim),
        width_((head_dim + 31) / 32 * 32),
        row_bytes_(bytes_of_row(type, width_)),
        keys_(static_cast<size_t>(kv_heads * capacity * row_bytes_), std::byte{0xFF}),
        values_(keys_) {}

  KvView view() { return {keys_.data(), values_.data(), type_, capacity_, kv_heads_, head_dim_}; }
  void poison(int64_t position) {
    for (int head = 0; head < kv_heads_; ++head) {
      for (auto* array : {&keys_, &values_}) {
        std::memset(array->data() + row(head, position), 0xFF, static_cast<size_t>(row_bytes_));
      }
    }
  }
  double key(int head, int64_t position, int64_t column) const {
    return read(keys_, row(head, position), column);
  }
  double value(int head, int64_t position, int64_t column) const {
    return read(values_, row(head, position), column);
  }

 private:
  static int64_t bytes_of_row(KvType type, int64_t width) {
    return type == KvType::kQ8 ? width * 34 / 32 : width * (type == KvType::kBF16 ? 2 : 4);
  }
  size_t row(int head, int64_t position) const {
    return static_cast<size_t>((head * capacity_ + position % capacity_) * row_bytes_);
  }
  template <class T>
  static T load(const std::vector<std::byte>& array, size_t at) {
    T value;
    std::memcpy(&value, array.data() + at, sizeof(value));
    return value;
  }
  double read(const std::vector<std::byte>& array, size_t row, int64_t column) const {
    const auto c = static_cast<size_t>(column);
    if (type_ == KvType::kF32) {
      return load<float>(array, row + 4 * c);
    }
    if (type_ == KvType::kBF16) {
      return bf16_value(load<uint16_t>(array, row + 2 * c));
    }
    const auto scales = row + static_cast<size_t>(width_);
    return load<int8_t>(array, row + c) * half_value(load<uint16_t>(array, scales + c / 32 * 2));
  }

  KvType type_;
  int64_t capacity_;
  int kv_heads_;
  int head_dim_;
  int64_t width_;
  int64_t row_bytes_;
  std::vector<std::byte> keys_;
  std::vector<std::byte> values_;
};

/// One query [head_dim] against kv head `head`.
inline std::vector<double> oracle_attend(
    const float* query, const KvStore& kv, int head, int head_dim, KeyRange range, double scale
) {
  std::vector<double> scores;
  double maximum = -std::numeric_limits<double>::infinity();
  for (int64_t p = range.begin; p < range.end; ++p) {
    double score = 0.0;
    for (int i = 0; i < head_dim; ++i) {
      score += query[i] * kv.key(head, p, i);
    }
    scores.push_back(score * scale);
    maximum = std::max(maximum, scores.back());
  }
  std::vector<double> out(static_cast<size_t>(head_dim), 0.0);
  double sum = 0.0;
  for (int64_t p = range.begin; p < range.end; ++p) {
    const double weight = std::exp(scores[static_cast<size_t>(p - range.begin)] - maximum);
    sum += weight;
    for (int i = 0; i < head_dim; ++i) {
      out[static_cast<size_t>(i)] += weight * kv.value(head, p, i);
    }
  }
  for (double& x : out) {
    x /= sum;
  }
  return out;
}

}  // namespace octet::test
