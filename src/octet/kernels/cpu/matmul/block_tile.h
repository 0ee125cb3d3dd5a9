// Tile kernels of the types with one scale per 32 values or finer (activations kInt8Per32), in two
// families: codes that are unsigned with an optional minimum, and codes that are signed (bytes, or
// levels looked up by 4-bit codes).
#pragma once

#include <type_traits>

#include "octet/kernels/cpu/matmul/tile_kernel.h"
#include "octet/tensor/types/iq4_levels.h"

namespace octet::cpu {

/// Q4_0 Q4_1 Q5_0 Q5_1: y = d * q + m with q unsigned; the types without minimums have m = -8 d or
/// -16 d.
template <DType dtype>
struct AffineBlockFamily {
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    using Record = Int8Per32Record;
    using Dot = typename Lanes::template UnsignedDot<kHasFifth ? 31 : 15>;
    const int64_t blocks = chunk.values / kBlockValues;
    Float sum[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      sum[m] = Lanes::load(chunk.sums_of(m, half, lane));
    }
    for (int64_t b = 0; b < blocks; ++b) {
      prefetch_share<Lanes, dtype, 8, half>(chunk, lane, b);
      typename Lanes::Int dot[M];
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        dot[m] = Lanes::zero_int();
      }
      const std::byte* activations = chunk.record + 32 * b * M;
      const std::byte* codes = chunk.tile + b * BlockTile::code_bytes(dtype) + 4 * lane;
      if constexpr (kHasFifth) {
        const std::byte* plane = chunk.tile + BlockTile::fifth_offset(dtype, blocks) +
                                 (2 * b + half) * kCodeVectorBytes + 4 * lane;
        const auto fifth = Lanes::load_bytes(plane);
        dot_codes<Lanes, Dot, M, 8>(dot, activations, [&](int64_t v) {
          const auto nibbles = Lanes::load_bytes(codes + v * kCodeVectorBytes);
          return Lanes::with_fifth(Lanes::template nibbles<half>(nibbles), fifth, v);
        });
      } else {
        dot_codes<Lanes, Dot, M, 8>(dot, activations, [&](int64_t v) {
          return Lanes::template raw_nibbles<half>(Lanes::load_bytes(codes + v * kCodeVectorBytes));
        });
      }
      const int64_t row = half * kHalfRows + lane;
      const Float d = Lanes::load_f16(
          chunk.tile + BlockTile::scale_offset(dtype, blocks) + (b * kTileRows + row) * 2
      );
      const Float minimum = load_minimum<Lanes>(chunk, blocks, b * kTileRows + row, d);
      const Float factor = kHasFifth ? d : Lanes::template unscale_raw_nibbles<half>(d);
      const std::byte* scales = chunk.record + Record::scales_offset(M, blocks) + 4 * b * M;
      const std::byte* sums = chunk.record + Record::sums_offset(M, blocks) + 4 * b * M;
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        const Float scale = Lanes::mul(factor, Lanes::broadcast(scales + 4 * m));
        sum[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, sum[m]);
        sum[m] = Lanes::fma(minimum, Lanes::broadcast(sums + 4 * m), sum[m]);
      }
    }
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      Lanes::store(chunk.sums_of(m, half, lane), sum[m]);
    }
  }

 private:
  static constexpr bool kHasFifth = dtype == DType::kQ5_0 || dtype == DType::kQ5_1;
  static constexpr bool kHasMinimum = dtype == DType::kQ4_1 || dtype == DType::kQ5_1;

  template <typename Lanes>
  OCTET_INLINE static typename Lanes::Float load_minimum(
      const ChunkProduct& chunk, int64_t blocks, int64_t index, typename Lanes::Float d
  ) {
    if constexpr (kHasMinimum) {
      return Lanes::load_f16(chunk.tile + BlockTile::minimum_offset(dtype, blocks) + index * 2);
    } else {
      return Lanes::mul(d, Lanes::constant(kHasFifth ? -16.0F : -8.0F));
    }
  }
};

/// Twice E2M1, so that levels are integers.
inline constexpr std::array<int8_t, 16> kDoubledE2M1 = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Q8_0 IQ4_NL MXFP4 NVFP4: y = scale * level with signed 8-bit levels; groups of 32, NVFP4 of 16.
/// The sum of MXFP4 and NVFP4 is in units of kUnit, which multiplies the finished sum with the
/// tensor's own scale. NVFP4 also takes activations in E2M1, with a scale for each of its groups.
template <DType dtype, ActivationKind kind = activation_kind(dtype)>
struct SignedBlockFamily {
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = kind;

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    using Record = std::conditional_t<kFineScales, E2M1Per16Record, Int8Per32Record>;
    using Dot = typename Lanes::template SignedDot<kLargest>;
    const int64_t blocks = (chunk.values + kBlockValues - 1) / kBlockValues;
    const auto levels = Lanes::template level_table<Lanes::kSignedBias>(kLevels);
    const int64_t row = half * kHalfRows + lane;
    const std::byte* bias = chunk.record + bias_offset<Record>(M, blocks);
    Float sum[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      sum[m] = Lanes::load(chunk.sums_of(m, half, lane));
    }
    for (int64_t b = 0; b < blocks; ++b) {
      prefetch_share<Lanes, dtype, 8, half>(chunk, lane, b);
      const std::byte* activations = chunk.record + 32 * b * M;
      const std::byte* scales =
          chunk.record + Record::scales_offset(M, blocks) + 4 * b * kScales * M;
      const std::byte* codes = chunk.tile + b * BlockTile::code_bytes(dtype) + 4 * lane +
                               (kNibbles ? 0 : kCodeVectorBytes * 8 * half);
      OCTET_UNROLL
      for (int64_t group = 0; group < kGroups; ++group) {
        typename Lanes::Int dot[M];
        OCTET_UNROLL
        for (int64_t m = 0; m < M; ++m) {
          dot[m] = Lanes::broadcast_int(bias + 4 * ((b * kGroups + group) * M + m));
        }
        constexpr int64_t kVectors = 8 / kGroups;
        dot_codes<Lanes, Dot, M, kVectors>(
            dot,
            activations + 4 * group * kVectors * M,
            [&](int64_t v) {
              const auto bytes =
                  Lanes::load_bytes(codes + (group * kVectors + v) * kCodeVectorBytes);
              if constexpr (kNibbles) {
                return Lanes::look_up(levels, Lanes::template nibbles<half>(bytes));
              } else {
                return Lanes::biased(bytes);
              }
            }
        );
        const Float d = load_scale<Lanes>(
            chunk.tile + BlockTile::scale_offset(dtype, blocks),
            (b * kGroups + group) * kTileRows + row
        );
        OCTET_UNROLL
        for (int64_t m = 0; m < M; ++m) {
          const std::byte* own = scales + 4 * ((kFineScales ? group : 0) * M + m);
          const Float scale = Lanes::mul(d, Lanes::broadcast(own));
          sum[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, sum[m]);
        }
      }
    }
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      Lanes::store(chunk.sums_of(m, half, lane), sum[m]);
    }
  }

 private:
  static constexpr bool kNibbles = dtype != DType::kQ8_0;
  static constexpr int64_t kGroups = dtype == DType::kNVFP4 ? 2 : 1;
  static constexpr bool kFineScales = kind == ActivationKind::kE2M1Per16;
  static constexpr int64_t kScales = kFineScales ? kGroups : 1;  // of activations, in 32 values
  static constexpr int kLargest = dtype == DType::kQ8_0 || dtype == DType::kIQ4NL ? 128 : 12;
  static constexpr const std::array<int8_t, 16>& kLevels =
      dtype == DType::kIQ4NL ? types::kIQ4Levels : kDoubledE2M1;

  template <typename Record>
  static constexpr int64_t bias_offset(int64_t rows, int64_t blocks) {
    if constexpr (kGroups == 1) {
      return Record::bias32_offset(rows, blocks);
    } else {
      return Record::bias16_offset(rows, blocks);
    }
  }

  template <typename Lanes>
  OCTET_INLINE static typename Lanes::Float load_scale(const std::byte* scales, int64_t index) {
    if constexpr (dtype == DType::kMXFP4) {
      return Lanes::load_exponent(scales + index);
    } else if constexpr (dtype == DType::kNVFP4) {
      return Lanes::load_e4m3(scales + index);
    } else {
      return Lanes::load_f16(scales + 2 * index);
    }
  }
};

/// NVFP4 with bfloat16 activations: a weight is level times E4M3 scale, exact in bfloat16, and sums
/// are those of the float types (float_tile.h): a sum of even and one of odd values in a chunk. In
/// units of kUnit as above.
struct NVFP4FloatFamily {
  static constexpr DType kDType = DType::kNVFP4;
  static constexpr ActivationKind kActivations = ActivationKind::kBF16;

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    const int64_t blocks = (chunk.values + kBlockValues - 1) / kBlockValues;
    const auto levels = Lanes::template level_table<Lanes::kSignedBias>(kDoubledE2M1);
    const std::byte* scales =
        chunk.tile + BlockTile::scale_offset(kDType, blocks) + half * kHalfRows + lane;
    const std::byte* activations = chunk.record;
    Float even[M];
    Float odd[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      even[m] = Lanes::zero();
      odd[m] = Lanes::zero();
    }
    for (int64_t group = 0; group < chunk.values / kGroupValues; ++group) {
      prefetch_share<Lanes, kDType, 16, half>(chunk, lane, group);
      const Float scale = Lanes::load_e4m3(scales + group * kTileRows);
      const std::byte* codes = chunk.tile + group * (4 * kCodeVectorBytes) + 4 * lane;
      for (int64_t v = 0; v < 4; ++v) {
        const auto four = Lanes::look_up(
            levels, Lanes::template nibbles<half>(Lanes::load_bytes(codes + v * kCodeVectorBytes))
        );
        OCTET_UNROLL
        for (int64_t k = 0; k < 4; ++k) {
          const Float weight = Lanes::mul(value<Lanes>(four, k), scale);
          OCTET_UNROLL
          for (int64_t m = 0; m < M; ++m) {
            Float& sum = k % 2 == 0 ? even[m] : odd[m];
            sum = Lanes::fma(weight, Lanes::broadcast(activations + 4 * (k * M + m)), sum);
          }
        }
        activations += int64_t{16} * M;
      }
    }
    add_even_and_odd<Lanes, M, half>(chunk, lane, even, odd);
  }

 private:
  static constexpr int64_t kGroupValues = 16;
  static constexpr int8_t kUnits[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};

  /// Value k of four, in every lane: their dot product with a unit vector, which all instruction
  /// sets have.
  template <typename Lanes>
  OCTET_INLINE static typename Lanes::Float value(typename Lanes::Bytes four, int64_t k) {
    using Dot = typename Lanes::template SignedDot<12>;
    static constexpr int32_t kBias = -Lanes::kSignedBias;
    const auto bias = Lanes::broadcast_int(reinterpret_cast<const std::byte*>(&kBias));
    const auto unit = Lanes::broadcast_quad(reinterpret_cast<const std::byte*>(kUnits[k]));
    return Lanes::to_float(Dot::end(bias, Dot::step(Dot::begin(bias), four, unit)));
  }
};

}  // namespace octet::cpu
