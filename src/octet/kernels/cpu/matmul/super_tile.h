// Tile kernels of the types with super-blocks of 256 values (activations kInt8Per256). Inside a
// super-block the scales of the groups are small integers; d of the weights and the scale of the
// activations come last.
#pragma once

#include "octet/kernels/cpu/matmul/tile_kernel.h"
#include "octet/tensor/types/iq4_levels.h"

namespace octet::cpu {

/// sums += group sums * activation scale, for a finished super-block.
template <typename Lanes, int M, int half>
OCTET_INLINE void add_super_block(
    const ChunkProduct& chunk, int64_t lane, const typename Lanes::Float (&block)[M]
) {
  const std::byte* scales = chunk.record + Int8Per256Record::scales_offset(M);
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    float* sum = chunk.sums_of(m, half, lane);
    Lanes::store(sum, Lanes::fma(block[m], Lanes::broadcast(scales + 4 * m), Lanes::load(sum)));
  }
}

/// block += dot * (scale * d)
template <typename Lanes, int M>
OCTET_INLINE void add_scaled(
    const typename Lanes::Int (&dot)[M],
    typename Lanes::Int scale,
    typename Lanes::Float d,
    typename Lanes::Float (&block)[M]
) {
  const typename Lanes::Float factor = Lanes::mul(Lanes::to_float(scale), d);
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    block[m] = Lanes::fma(Lanes::to_float(dot[m]), factor, block[m]);
  }
}

/// Q4_K Q5_K: y = d * scale_j * q - dmin * minimum_j. The minimums meet the sums of the activation
/// codes in one integer dot product, two groups per 32-bit lane.
template <DType dtype>
class AffineSuperFamily {
  static constexpr bool kHasFifth = dtype == DType::kQ5K;

 public:
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  static constexpr int64_t kStepValues = 32;

  template <typename Lanes, int M, int half>
  class Sums {
   public:
    using Dot = typename Lanes::template UnsignedDot<kHasFifth ? 31 : 15>;
    static constexpr int64_t kVectors = 8;

    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : chunk_(chunk),
          lane_(lane),
          scale_bytes_(
              chunk.tile + AffineSuperTile::scale_offset(dtype) + kCodeVectorBytes * 3 * half +
              4 * lane
          ),
          d_(Lanes::load_f16(chunk.tile + AffineSuperTile::d_offset(dtype) + 2 * row())) {
      if constexpr (!kHasFifth) {
        d_ = Lanes::template unscale_raw_nibbles<half>(d_);
      }
      set_zero<Lanes>(block_);
    }

    OCTET_INLINE void start(int64_t /*group*/, typename Lanes::Int (&dot)[M]) const {
      start_at_zero<Lanes>(dot);
    }
    OCTET_INLINE const std::byte* activations(int64_t group) const {
      return chunk_.record + 32 * group * M;
    }
    OCTET_INLINE typename Lanes::Bytes code(int64_t group, int64_t v) const {
      const auto nibbles =
          Lanes::load_bytes(chunk_.tile + (group * 8 + v) * kCodeVectorBytes + 4 * lane_);
      if constexpr (kHasFifth) {
        const auto fifth = Lanes::load_bytes(
            chunk_.tile + AffineSuperTile::fifth_offset() + (2 * group + half) * kCodeVectorBytes +
            4 * lane_
        );
        return Lanes::with_fifth(Lanes::template nibbles<half>(nibbles), fifth, v);
      } else {
        return Lanes::template raw_nibbles<half>(nibbles);
      }
    }
    static constexpr bool keeps(int64_t /*v*/) { return kHasFifth && Lanes::kKeptCodes >= 1; }
    OCTET_INLINE void finish(int64_t group, const typename Lanes::Int (&dot)[M]) {
      const auto quarters = Lanes::load_int(scale_bytes_ + group / 4 * kCodeVectorBytes);
      add_scaled<Lanes, M>(dot, Lanes::bits6(quarters, 8 * (group % 4)), d_, block_);
    }

    OCTET_INLINE void end() {
      subtract_minimums<Lanes, M>(
          scale_bytes_,
          chunk_.record + Int8Per256Record::pair_sums_offset(M),
          Lanes::load_f16(chunk_.tile + AffineSuperTile::dmin_offset(dtype) + 2 * row()),
          block_
      );
      add_super_block<Lanes, M, half>(chunk_, lane_, block_);
    }

   private:
    using Float = typename Lanes::Float;

    OCTET_INLINE int64_t row() const { return half * kHalfRows + lane_; }

    const ChunkProduct& chunk_;
    int64_t lane_;
    const std::byte* scale_bytes_;
    Float d_;
    Float block_[M];
  };

 private:
  /// block -= dmin * sum_j minimum_j * (sum of activation codes of group j)
  template <typename Lanes, int M>
  OCTET_INLINE static void subtract_minimums(
      const std::byte* scale_bytes,
      const std::byte* pair_sums,
      typename Lanes::Float dmin,
      typename Lanes::Float (&block)[M]
  ) {
    using Int = typename Lanes::Int;
    const Int s0 = Lanes::load_int(scale_bytes);
    const Int s1 = Lanes::load_int(scale_bytes + kCodeVectorBytes);
    const Int low = Lanes::load_int(scale_bytes + 2 * kCodeVectorBytes);
    const Int high = Lanes::or_int(
        Lanes::or_int(
            Lanes::and_int(Lanes::shift_right_int(s0, 6), 0x03030303),
            Lanes::and_int(Lanes::shift_right_int(s1, 4), 0x0C0C0C0C)
        ),
        Lanes::and_int(Lanes::shift_right_int(low, 2), 0x30303030)
    );
    const Int pairs[4] = {
        Lanes::and_int(low, 0x003F003F),
        Lanes::and_int(Lanes::shift_right_int(low, 8), 0x003F003F),
        Lanes::and_int(high, 0x003F003F),
        Lanes::and_int(Lanes::shift_right_int(high, 8), 0x003F003F)};
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      Int sum = Lanes::zero_int();
      OCTET_UNROLL
      for (int64_t p = 0; p < 4; ++p) {
        sum = Lanes::dot_pairs(sum, pairs[p], Lanes::broadcast_int(pair_sums + 4 * (p * M + m)));
      }
      block[m] = Lanes::fnma(Lanes::to_float(sum), dmin, block[m]);
    }
  }
};

/// What Q6_K and IQ4_XS share: groups of `group_values` with a signed scale each and no minimum;
/// integer sums start from what the record says at `bias_offset`. `Tile` says where scales and d
/// are.
template <typename Lanes, int M, int half, typename Tile, int64_t group_values>
class SignedSuperSums {
 public:
  static constexpr int64_t kVectors = group_values / 4;

  OCTET_INLINE SignedSuperSums(const ChunkProduct& chunk, int64_t lane, int64_t bias_offset)
      : chunk_(chunk),
        lane_(lane),
        bias_(chunk.record + bias_offset),
        d_(Lanes::load_f16(chunk.tile + Tile::kDOffset + 2 * row())) {
    set_zero<Lanes>(block_);
  }

  OCTET_INLINE void start(int64_t group, typename Lanes::Int (&dot)[M]) const {
    start_at<Lanes>(bias_ + 4 * group * M, dot);
  }
  OCTET_INLINE const std::byte* activations(int64_t group) const {
    return chunk_.record + group_values * group * M;
  }
  OCTET_INLINE void finish(int64_t group, const typename Lanes::Int (&dot)[M]) {
    add_scaled<Lanes, M>(
        dot,
        Lanes::load_i8(chunk_.tile + Tile::kScaleOffset + group * kTileRows + row()),
        d_,
        block_
    );
  }
  OCTET_INLINE void end() { add_super_block<Lanes, M, half>(chunk_, lane_, block_); }

 protected:
  /// The codes of the lanes, from the chunk's begin on.
  OCTET_INLINE const std::byte* codes() const { return chunk_.tile + 4 * lane_; }

 private:
  OCTET_INLINE int64_t row() const { return half * kHalfRows + lane_; }

  const ChunkProduct& chunk_;
  int64_t lane_;
  const std::byte* bias_;
  typename Lanes::Float d_;
  typename Lanes::Float block_[M];
};

/// Q6_K: y = d * scale_j * (q - 32), groups of 16. The offset is in the dot products from the
/// start, as -32 * sum of the activation codes.
struct SixBitFamily {
  static constexpr DType kDType = DType::kQ6K;
  static constexpr ActivationKind kActivations = activation_kind(kDType);
  static constexpr int64_t kStepValues = 16;

  template <typename Lanes, int M, int half>
  class Sums : public SignedSuperSums<Lanes, M, half, SixBitTile, kStepValues> {
   public:
    using Dot = typename Lanes::template UnsignedDot<63>;

    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : SignedSuperSums<Lanes, M, half, SixBitTile, kStepValues>(
              chunk, lane, Int8Per256Record::six_bias_offset(M)
          ) {}

    OCTET_INLINE typename Lanes::Bytes code(int64_t group, int64_t v) const {
      const std::byte* bytes =
          this->codes() + group * SixBitTile::kGroupBytes + half * SixBitTile::kHalfBytes;
      if (v < 3) {
        return Lanes::low6(Lanes::load_bytes(bytes + v * kCodeVectorBytes));
      }
      return Lanes::join_top_bits(
          Lanes::load_bytes(bytes),
          Lanes::load_bytes(bytes + kCodeVectorBytes),
          Lanes::load_bytes(bytes + 2 * kCodeVectorBytes)
      );
    }
    /// The fourth takes most of the unpacking.
    static constexpr bool keeps(int64_t v) { return Lanes::kKeptCodes >= (v == 3 ? 1 : 2); }
  };
};

/// IQ4_XS: y = d * scale_j * level[q], groups of 32 with signed scales.
struct LevelSuperFamily {
  static constexpr DType kDType = DType::kIQ4XS;
  static constexpr ActivationKind kActivations = activation_kind(kDType);
  static constexpr int64_t kStepValues = 32;

  template <typename Lanes, int M, int half>
  class Sums : public SignedSuperSums<Lanes, M, half, LevelSuperTile, kStepValues> {
   public:
    using Dot = typename Lanes::template SignedDot<128>;

    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : SignedSuperSums<Lanes, M, half, LevelSuperTile, kStepValues>(
              chunk, lane, Int8Per256Record::bias32_offset(M)
          ),
          levels_(Lanes::template level_table<Lanes::kSignedBias>(types::kIQ4Levels)) {}

    OCTET_INLINE typename Lanes::Bytes code(int64_t group, int64_t v) const {
      const auto nibbles = Lanes::load_bytes(this->codes() + (group * 8 + v) * kCodeVectorBytes);
      return Lanes::look_up(levels_, Lanes::template nibbles<half>(nibbles));
    }
    static constexpr bool keeps(int64_t /*v*/) { return Lanes::kKeptCodes >= 2; }

   private:
    typename Lanes::LevelTable levels_;
  };
};

}  // namespace octet::cpu
