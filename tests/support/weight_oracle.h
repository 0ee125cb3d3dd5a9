// What weight blocks mean, in float64, one element at a time, straight from the layout tables: the
// oracle for decoding. Written per element and per bit, so that it shares no structure with the
// decoders in tensor/types. Not fast, and not for encoders.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "octet/tensor/dtype.h"
#include "octet/tensor/logical_tensor.h"

namespace octet::test {

/// A decoded element and the sum of magnitudes of its terms, which bounds the rounding error of
/// float32 arithmetic.
struct OracleValue {
  double value = 0.0;
  double magnitude = 0.0;
};

/// The bytes of one block as little-endian integers.
class BlockBits {
 public:
  explicit BlockBits(const std::byte* bytes) : bytes_(bytes) {}

  int u8(int64_t offset) const { return static_cast<int>(bytes_[offset]); }
  int i8(int64_t offset) const { return u8(offset) < 128 ? u8(offset) : u8(offset) - 256; }
  int u16(int64_t offset) const { return u8(offset) | (u8(offset + 1) << 8); }
  int bit(int64_t offset, int64_t index) const {
    return (u8(offset + index / 8) >> (index % 8)) & 1;
  }
  int nibble(int64_t offset, bool high) const { return high ? u8(offset) >> 4 : u8(offset) % 16; }
  double f16(int64_t offset) const { return binary_float(u16(offset), 5, 10); }

  /// A code with sign, exponent and mantissa. Formats of 5 and 8 exponent bits are infinite or NaN
  /// at the largest exponent, E4M3 is NaN at its largest code.
  static double binary_float(int code, int exponent_bits, int mantissa_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double mantissa = std::ldexp(code & ((1 << mantissa_bits) - 1), -mantissa_bits);
    const bool negative = ((code >> (exponent_bits + mantissa_bits)) & 1) != 0;
    double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias)
                                 : std::ldexp(1.0 + mantissa, exponent - bias);
    if (exponent_bits >= 5 && exponent == (1 << exponent_bits) - 1) {
      value = mantissa == 0.0 ? INFINITY : NAN;
    }
    if (exponent_bits == 4 && exponent == 15 && mantissa == 0.875) {
      value = NAN;
    }
    return negative ? -value : value;
  }

 private:
  const std::byte* bytes_;
};

inline OracleValue product(double value) {
  return {value, std::fabs(value)};
}

inline OracleValue difference(double a, double b) {
  return {a - b, std::fabs(a) + std::fabs(b)};
}

/// Scale (which = 0) or minimum (which = 1) of a Q4_K or Q5_K group; the twelve bytes begin at
/// offset 4.
inline int oracle_k_scale(const BlockBits& block, int64_t group, int which) {
  if (group < 4) {
    return block.u8(4 + 4 * which + group) % 64;
  }
  const int low = block.nibble(4 + 8 + group - 4, which == 1);
  return low + 16 * (block.u8(4 + 4 * which + group - 4) / 64);
}

inline double oracle_iq4_level(int code) {
  static constexpr int kLevels[16] = {
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return kLevels[code];
}

/// Element e of a block of 32 with 4-bit codes from `offset`.
inline int oracle_code4(const BlockBits& block, int64_t offset, int64_t e) {
  return block.nibble(offset + e % 16, e >= 16);
}

inline OracleValue oracle_k_affine(const BlockBits& block, int64_t e, bool five_bits) {
  const int64_t group = e / 32;
  const int64_t codes = five_bits ? 48 : 16;
  int q = block.nibble(codes + 32 * (group / 2) + e % 32, group % 2 == 1);
  if (five_bits) {
    q += 16 * block.bit(16 + e % 32, group);
  }
  return difference(
      block.f16(0) * oracle_k_scale(block, group, 0) * q,
      block.f16(2) * oracle_k_scale(block, group, 1)
  );
}

inline OracleValue oracle_q6_k(const BlockBits& block, int64_t e) {
  const int64_t half = e / 128;
  const int64_t quarter = e % 128 / 32;
  const int64_t l = e % 32;
  const int low = block.nibble(64 * half + 32 * (quarter % 2) + l, quarter >= 2);
  const int upper = block.bit(128 + 32 * half + l, 2 * quarter) +
                    2 * block.bit(128 + 32 * half + l, 2 * quarter + 1);
  return product(block.f16(208) * block.i8(192 + e / 16) * (low + 16 * upper - 32));
}

inline OracleValue oracle_iq4_xs(const BlockBits& block, int64_t e) {
  const int64_t group = e / 32;
  const int scale = block.nibble(4 + group / 2, group % 2 == 1) + 16 * block.bit(2, 2 * group) +
                    32 * block.bit(2, 2 * group + 1);
  const int code = oracle_code4(block, 8 + 16 * group, e % 32);
  return product(block.f16(0) * (scale - 32) * oracle_iq4_level(code));
}

inline OracleValue oracle_mxfp4(const BlockBits& block, int64_t e) {
  const int exponent = block.u8(0);
  const double code = BlockBits::binary_float(oracle_code4(block, 1, e), 2, 1);
  return product(exponent == 255 ? NAN : std::ldexp(code, exponent - 127));
}

inline OracleValue oracle_nvfp4(const BlockBits& block, int64_t e) {
  const int64_t group = e / 16;
  const int scale = block.u8(group) % 128;
  const int code = block.nibble(4 + 8 * group + e % 8, e % 16 >= 8);
  return product(
      scale == 127 ? 0.0
                   : BlockBits::binary_float(scale, 4, 3) * BlockBits::binary_float(code, 2, 1)
  );
}

/// Element `e` of a block of one of the types whose block is one span.
inline OracleValue oracle_element(DType dtype, const std::byte* bytes, int64_t e) {
  const BlockBits block(bytes);
  switch (dtype) {
    case DType::kF32:
      return product(BlockBits::binary_float(block.u16(0) | (block.u16(2) << 16), 8, 23));
    case DType::kF16:
      return product(block.f16(0));
    case DType::kBF16:
      return product(BlockBits::binary_float(block.u16(0), 8, 7));
    case DType::kQ8_0:
      return product(block.f16(0) * block.i8(2 + e));
    case DType::kQ4_0:
      return product(block.f16(0) * (oracle_code4(block, 2, e) - 8));
    case DType::kQ4_1:
      return difference(block.f16(0) * oracle_code4(block, 4, e), -block.f16(2));
    case DType::kQ5_0:
      return product(block.f16(0) * (oracle_code4(block, 6, e) + 16 * block.bit(2, e) - 16));
    case DType::kQ5_1:
      return difference(
          block.f16(0) * (oracle_code4(block, 8, e) + 16 * block.bit(4, e)), -block.f16(2)
      );
    case DType::kQ4K:
      return oracle_k_affine(block, e, false);
    case DType::kQ5K:
      return oracle_k_affine(block, e, true);
    case DType::kQ6K:
      return oracle_q6_k(block, e);
    case DType::kIQ4NL:
      return product(block.f16(0) * oracle_iq4_level(oracle_code4(block, 2, e)));
    case DType::kIQ4XS:
      return oracle_iq4_xs(block, e);
    case DType::kMXFP4:
      return oracle_mxfp4(block, e);
    case DType::kNVFP4:
      return oracle_nvfp4(block, e);
    case DType::kNVFP4ModelOpt:
      break;
  }
  return product(NAN);
}

/// Element (row, col) of a weight of any type, its global scale included.
inline OracleValue oracle_weight(const LogicalTensor& tensor, int64_t row, int64_t col) {
  const int64_t cols = tensor.cols();
  const double scale = static_cast<double>(tensor.scale);
  if (tensor.dtype == DType::kNVFP4ModelOpt) {
    const BlockBits codes(tensor.data.data() + row * cols / 2);
    const BlockBits scales(tensor.block_scales.data() + row * cols / 16);
    const int code = codes.nibble(col / 2, col % 2 == 1);
    return product(
        BlockBits::binary_float(code, 2, 1) * BlockBits::binary_float(scales.u8(col / 16), 4, 3) *
        scale
    );
  }
  const DTypeFacts& facts = dtype_facts(tensor.dtype);
  const int64_t block = (row * cols + col) / facts.block_values;
  const OracleValue element = oracle_element(
      tensor.dtype, tensor.data.data() + block * facts.block_bytes, col % facts.block_values
  );
  return {element.value * scale, element.magnitude * std::fabs(scale)};
}

}  // namespace octet::test
