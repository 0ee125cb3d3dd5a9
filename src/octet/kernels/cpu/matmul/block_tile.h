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
class AffineBlockFamily {
  static constexpr bool kHasFifth = dtype == DType::kQ5_0 || dtype == DType::kQ5_1;
  static constexpr bool kHasMinimum = dtype == DType::kQ4_1 || dtype == DType::kQ5_1;

 public:
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  static constexpr int64_t kStepValues = kBlockValues;

  template <typename Lanes, int M, int half>
  class Sums {
   public:
    using Dot = typename Lanes::template UnsignedDot<kHasFifth ? 31 : 15>;
    static constexpr int64_t kVectors = 8;

    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : chunk_(chunk), lane_(lane), blocks_(chunk.values / kBlockValues) {
      load_sums<Lanes, M, half>(chunk_, lane_, sum_);
    }

    OCTET_INLINE void start(int64_t /*b*/, typename Lanes::Int (&dot)[M]) const {
      start_at_zero<Lanes>(dot);
    }
    OCTET_INLINE const std::byte* activations(int64_t b) const {
      return chunk_.record + 32 * b * M;
    }
    OCTET_INLINE typename Lanes::Bytes code(int64_t b, int64_t v) const {
      const auto nibbles = Lanes::load_bytes(
          chunk_.tile + b * BlockTile::code_bytes(dtype) + v * kCodeVectorBytes + 4 * lane_
      );
      if constexpr (kHasFifth) {
        const auto fifth = Lanes::load_bytes(
            chunk_.tile + BlockTile::fifth_offset(dtype, blocks_) +
            (2 * b + half) * kCodeVectorBytes + 4 * lane_
        );
        return Lanes::with_fifth(Lanes::template nibbles<half>(nibbles), fifth, v);
      } else {
        return Lanes::template raw_nibbles<half>(nibbles);
      }
    }
    static constexpr bool keeps(int64_t /*v*/) { return kHasFifth && Lanes::kKeptCodes >= 2; }
    OCTET_INLINE void finish(int64_t b, const typename Lanes::Int (&dot)[M]) {
      const int64_t index = b * kTileRows + half * kHalfRows + lane_;
      const Float d =
          Lanes::load_f16(chunk_.tile + BlockTile::scale_offset(dtype, blocks_) + 2 * index);
      const Float minimum = load_minimum<Lanes>(chunk_, blocks_, index, d);
      const Float factor = kHasFifth ? d : Lanes::template unscale_raw_nibbles<half>(d);
      const std::byte* scales = chunk_.record + Record::scales_offset(M, blocks_) + 4 * b * M;
      const std::byte* sums = chunk_.record + Record::sums_offset(M, blocks_) + 4 * b * M;
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        const Float scale = Lanes::mul(factor, Lanes::broadcast(scales + 4 * m));
        sum_[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, sum_[m]);
        sum_[m] = Lanes::fma(minimum, Lanes::broadcast(sums + 4 * m), sum_[m]);
      }
    }

    OCTET_INLINE void end() { store_sums<Lanes, M, half>(chunk_, lane_, sum_); }

   private:
    using Float = typename Lanes::Float;
    using Record = Int8Per32Record;

    const ChunkProduct& chunk_;
    int64_t lane_;
    int64_t blocks_;
    Float sum_[M];
  };

 private:
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
class SignedBlockFamily {
  static constexpr bool kNibbles = dtype != DType::kQ8_0;
  static constexpr int64_t kGroups = dtype == DType::kNVFP4 ? 2 : 1;
  static constexpr bool kFineScales = kind == ActivationKind::kE2M1Per16;
  static constexpr int kLargest = dtype == DType::kQ8_0 || dtype == DType::kIQ4NL ? 128 : 12;
  static constexpr const std::array<int8_t, 16>& kLevels =
      dtype == DType::kIQ4NL ? types::kIQ4Levels : kDoubledE2M1;

 public:
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = kind;

  static constexpr int64_t kStepValues = kBlockValues / kGroups;  // with one scale

  template <typename Lanes, int M, int half>
  class Sums {
   public:
    using Dot = typename Lanes::template SignedDot<kLargest>;
    static constexpr int64_t kVectors = 8 / kGroups;

    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : chunk_(chunk),
          lane_(lane),
          blocks_(divide_up(chunk.values, kBlockValues)),
          levels_(Lanes::template level_table<Lanes::kSignedBias>(kLevels)) {
      load_sums<Lanes, M, half>(chunk_, lane_, sum_);
    }

    OCTET_INLINE void start(int64_t group, typename Lanes::Int (&dot)[M]) const {
      start_at<Lanes>(chunk_.record + bias_offset<Record>(M, blocks_) + 4 * group * M, dot);
    }
    OCTET_INLINE const std::byte* activations(int64_t group) const {
      return chunk_.record + kStepValues * group * M;
    }
    OCTET_INLINE typename Lanes::Bytes code(int64_t group, int64_t v) const {
      const std::byte* codes = chunk_.tile + group / kGroups * BlockTile::code_bytes(dtype) +
                               (kNibbles ? 0 : kCodeVectorBytes * half) + 4 * lane_;
      constexpr int64_t kStride = kCodeVectorBytes * (kNibbles ? 1 : 2);
      const auto bytes = Lanes::load_bytes(codes + (group % kGroups * kVectors + v) * kStride);
      if constexpr (kNibbles) {
        return Lanes::look_up(levels_, Lanes::template nibbles<half>(bytes));
      } else {
        return Lanes::biased(bytes);
      }
    }
    /// Bytes are there already.
    static constexpr bool keeps(int64_t /*v*/) { return kNibbles && Lanes::kKeptCodes >= 2; }
    OCTET_INLINE void finish(int64_t group, const typename Lanes::Int (&dot)[M]) {
      const Float d = load_scale<Lanes>(
          chunk_.tile + BlockTile::scale_offset(dtype, blocks_),
          group * kTileRows + half * kHalfRows + lane_
      );
      const std::byte* scales = chunk_.record + Record::scales_offset(M, blocks_) +
                                4 * (kFineScales ? group : group / kGroups) * M;
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        const Float scale = Lanes::mul(d, Lanes::broadcast(scales + 4 * m));
        sum_[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, sum_[m]);
      }
    }

    OCTET_INLINE void end() { store_sums<Lanes, M, half>(chunk_, lane_, sum_); }

   private:
    using Float = typename Lanes::Float;
    using Record = std::conditional_t<kFineScales, E2M1Per16Record, Int8Per32Record>;

    const ChunkProduct& chunk_;
    int64_t lane_;
    int64_t blocks_;
    typename Lanes::LevelTable levels_;
    Float sum_[M];
  };

 private:
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

  static constexpr int64_t kStepValues = 16;

  template <typename Lanes, int M, int half>
  class Sums {
   public:
    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : chunk_(chunk),
          lane_(lane),
          levels_(Lanes::template level_table<Lanes::kSignedBias>(kDoubledE2M1)),
          scales_(
              chunk.tile + BlockTile::scale_offset(kDType, divide_up(chunk.values, kBlockValues)) +
              half * kHalfRows + lane
          ) {
      set_zero<Lanes>(even_);
      set_zero<Lanes>(odd_);
    }

    OCTET_INLINE void step(int64_t group) {
      const Float scale = Lanes::load_e4m3(scales_ + group * kTileRows);
      const std::byte* codes = chunk_.tile + group * (4 * kCodeVectorBytes) + 4 * lane_;
      const std::byte* activations = chunk_.record + 4 * kStepValues * M * group;
      for (int64_t v = 0; v < 4; ++v) {
        const auto four = Lanes::look_up(
            levels_, Lanes::template nibbles<half>(Lanes::load_bytes(codes + v * kCodeVectorBytes))
        );
        OCTET_UNROLL
        for (int64_t k = 0; k < 4; ++k) {
          const Float weight = Lanes::mul(value<Lanes>(four, k), scale);
          OCTET_UNROLL
          for (int64_t m = 0; m < M; ++m) {
            Float& sum = k % 2 == 0 ? even_[m] : odd_[m];
            sum = Lanes::fma(weight, Lanes::broadcast(activations + 4 * (k * M + m)), sum);
          }
        }
        activations += int64_t{16} * M;
      }
    }

    OCTET_INLINE void end() { add_even_and_odd<Lanes, M, half>(chunk_, lane_, even_, odd_); }

   private:
    using Float = typename Lanes::Float;

    const ChunkProduct& chunk_;
    int64_t lane_;
    typename Lanes::LevelTable levels_;
    const std::byte* scales_;
    Float even_[M];
    Float odd_[M];
  };

 private:
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
