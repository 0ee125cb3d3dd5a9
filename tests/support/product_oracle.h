// Matrix products in float64, the oracle for every matmul kernel: weights element by element from
// their layout tables, and activations either as given or rounded as the weight type's contract
// says (written here a second time, value by value). Not fast.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "octet/kernels/cpu/matmul_kernels.h"
#include "octet/tensor/dtype.h"
#include "octet/tensor/types/float_formats.h"
#include "support/random_checkpoint.h"
#include "support/weight_oracle.h"

namespace octet::test {

/// A matrix whose blocks are random bytes, so that every code, scale and minimum occurs; only the
/// half-precision scales are kept to magnitudes of 2^-9 to 2^-3 and MXFP4's exponents near 127.
class RandomBlocks {
 public:
  RandomBlocks(DType dtype, int64_t rows, int64_t cols, uint64_t seed)
      : random_(seed), dtype_(dtype) {
    const DTypeFacts& facts = dtype_facts(dtype);
    const int64_t blocks = rows * (cols / facts.block_values);
    auto bytes = std::make_shared<std::vector<std::byte>>(blocks * facts.block_bytes);
    fill(*bytes);
    for (int64_t b = 0; b < blocks; ++b) {
      tame(bytes->data() + b * facts.block_bytes);
    }
    owned_.tensor.name = std::string(facts.name) + ".weight";
    owned_.tensor.dtype = dtype;
    owned_.tensor.shape = {rows, cols};
    owned_.tensor.data = *bytes;
    owned_.storage = bytes;
    if (dtype == DType::kNVFP4ModelOpt) {
      scales_.resize(blocks);
      for (std::byte& scale : scales_) {
        scale = static_cast<std::byte>(random_.integer(0, 0x7E));
      }
      owned_.tensor.block_scales = scales_;
    }
    if (dtype == DType::kNVFP4 || dtype == DType::kNVFP4ModelOpt) {
      owned_.tensor.scale = 0.37F;
    }
  }
  RandomBlocks(const RandomBlocks&) = delete;
  RandomBlocks& operator=(const RandomBlocks&) = delete;

  const LogicalTensor& tensor() const { return owned_.tensor; }

 private:
  void fill(std::vector<std::byte>& bytes) {
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random_.bits() >> 56);
    }
  }

  void set_f16(std::byte* at) {
    const auto magnitude = static_cast<float>(std::exp2(-9.0 + 6.0 * random_.uniform()));
    const uint16_t bits = f32_to_f16(random_.integer(0, 1) == 0 ? magnitude : -magnitude);
    std::memcpy(at, &bits, 2);
  }

  void tame(std::byte* block) {
    switch (dtype_) {
      case DType::kF32: {
        const auto value = static_cast<float>(random_.normal());
        std::memcpy(block, &value, 4);
        break;
      }
      case DType::kBF16: {
        const uint16_t bits = f32_to_bf16(static_cast<float>(random_.normal()));
        std::memcpy(block, &bits, 2);
        break;
      }
      case DType::kQ4_1:
      case DType::kQ5_1:
      case DType::kQ4K:
      case DType::kQ5K:
        set_f16(block);
        set_f16(block + 2);
        break;
      case DType::kQ6K:
        set_f16(block + 208);
        break;
      case DType::kMXFP4:
        *block = static_cast<std::byte>(random_.integer(120, 132));
        break;
      case DType::kNVFP4:
      case DType::kNVFP4ModelOpt:
        break;
      default:
        set_f16(block);
    }
  }

  RandomNumbers random_;
  DType dtype_;
  OwnedTensor owned_;
  std::vector<std::byte> scales_;
};

/// Lengths of rows that meet every case of a tile: one block, an odd number of them, exactly one
/// chunk of 256, several chunks, and chunks with a rest.
inline std::vector<int64_t> column_counts(DType dtype) {
  const int64_t block = dtype_facts(dtype).block_values;
  if (block == 1) {
    return {1, 2, 3, 64, 257, 515};
  }
  if (block == 256) {
    return {256, 768};
  }
  return {block, 3 * block, 256, 512 + block};
}

/// Values that one activation scale covers; 0: activations are not rounded.
inline int64_t activation_block(DType dtype) {
  switch (cpu::activation_kind(dtype)) {
    case cpu::ActivationKind::kInt8Per32:
      return 32;
    case cpu::ActivationKind::kInt8Per256:
      return 256;
    case cpu::ActivationKind::kF32:
    case cpu::ActivationKind::kBF16:
    case cpu::ActivationKind::kE2M1Per16:  // not by default
      break;
  }
  return 0;
}

/// One row as the contract rounds it, and for every value half a step: the largest change by
/// rounding.
struct RoundedRow {
  std::vector<double> values;
  std::vector<double> half_steps;
};

inline RoundedRow round_activations(DType dtype, const float* row, int64_t cols) {
  RoundedRow rounded;
  const int64_t block = activation_block(dtype);
  for (int64_t first = 0; first < cols; first += block == 0 ? cols : block) {
    const int64_t last = block == 0 ? cols : std::min(first + block, cols);
    float amax = 0.0F;
    for (int64_t k = first; k < last; ++k) {
      amax = std::max(amax, std::fabs(row[k]));
    }
    const float scale = amax / 127.0F;
    const float inverse = 127.0F / amax;
    for (int64_t k = first; k < last; ++k) {
      if (block == 0) {
        rounded.values.push_back(static_cast<double>(row[k]));
        rounded.half_steps.push_back(0.0);
        continue;
      }
      const float code = std::isfinite(inverse) ? std::nearbyint(row[k] * inverse) : 0.0F;
      rounded.values.push_back(static_cast<double>(code) * static_cast<double>(scale));
      rounded.half_steps.push_back(0.5001 * static_cast<double>(scale));
    }
  }
  return rounded;
}

/// One dot product with rounded and with exact activations, the sum of the magnitudes of its terms,
/// and the largest difference that rounding the activations can make.
struct OracleDot {
  double rounded = 0.0;
  double exact = 0.0;
  double magnitude = 0.0;
  double rounding = 0.0;
};

inline OracleDot oracle_dot(
    const LogicalTensor& tensor, int64_t output, const float* row, const RoundedRow& rounded
) {
  OracleDot dot;
  for (int64_t k = 0; k < tensor.cols(); ++k) {
    const OracleValue weight = oracle_weight(tensor, output, k);
    dot.rounded += weight.value * rounded.values[k];
    dot.exact += weight.value * static_cast<double>(row[k]);
    dot.magnitude += weight.magnitude * std::fabs(rounded.values[k]);
    dot.rounding += std::fabs(weight.value) * rounded.half_steps[k];
  }
  return dot;
}

}  // namespace octet::test
