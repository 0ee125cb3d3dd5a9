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

/// Q4_K Q5_K: y = d * scale_j * q - dmin * minimum_j. The minimums meet the sums of the activation
/// codes in one integer dot product, two groups per 32-bit lane.
template <DType dtype>
struct AffineSuperFamily {
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    using Int = typename Lanes::Int;
    using Dot = typename Lanes::template UnsignedDot<kHasFifth ? 31 : 15>;
    const int64_t row = half * kHalfRows + lane;
    const std::byte* scale_bytes =
        chunk.tile + AffineSuperTile::scale_offset(dtype) + kCodeVectorBytes * 3 * half + 4 * lane;
    Float d = Lanes::load_f16(chunk.tile + AffineSuperTile::d_offset(dtype) + 2 * row);
    if constexpr (!kHasFifth) {
      d = Lanes::template unscale_raw_nibbles<half>(d);
    }
    Float block[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      block[m] = Lanes::zero();
    }
    for (int64_t group = 0; group < 8; ++group) {
      prefetch_share<Lanes, dtype, 8, half>(chunk, lane, group);
      Int dot[M];
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        dot[m] = Lanes::zero_int();
      }
      dot_group<Lanes, Dot, M, half>(chunk, lane, group, dot);
      const Int quarters = Lanes::load_int(scale_bytes + group / 4 * kCodeVectorBytes);
      const Float scale = Lanes::mul(Lanes::to_float(Lanes::bits6(quarters, 8 * (group % 4))), d);
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        block[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, block[m]);
      }
    }
    subtract_minimums<Lanes, M>(
        scale_bytes,
        chunk.record + Int8Per256Record::pair_sums_offset(M),
        Lanes::load_f16(chunk.tile + AffineSuperTile::dmin_offset(dtype) + 2 * row),
        block
    );
    add_super_block<Lanes, M, half>(chunk, lane, block);
  }

 private:
  static constexpr bool kHasFifth = dtype == DType::kQ5K;

  template <typename Lanes, typename Dot, int M, int half>
  OCTET_INLINE static void dot_group(
      const ChunkProduct& chunk, int64_t lane, int64_t group, typename Lanes::Int (&dot)[M]
  ) {
    const std::byte* activations = chunk.record + 32 * group * M;
    const std::byte* codes = chunk.tile + group * 8 * kCodeVectorBytes + 4 * lane;
    if constexpr (kHasFifth) {
      const auto fifth = Lanes::load_bytes(
          chunk.tile + AffineSuperTile::fifth_offset() + (2 * group + half) * kCodeVectorBytes +
          4 * lane
      );
      dot_codes<Lanes, Dot, M, 8>(dot, activations, [&](int64_t v) {
        const auto nibbles = Lanes::load_bytes(codes + v * kCodeVectorBytes);
        return Lanes::with_fifth(Lanes::template nibbles<half>(nibbles), fifth, v);
      });
    } else {
      dot_codes<Lanes, Dot, M, 8>(dot, activations, [&](int64_t v) {
        return Lanes::template raw_nibbles<half>(Lanes::load_bytes(codes + v * kCodeVectorBytes));
      });
    }
  }

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

/// Q6_K: y = d * scale_j * (q - 32), groups of 16. The offset is in the dot products from the
/// start, as -32 * sum of the activation codes.
struct SixBitFamily {
  static constexpr DType kDType = DType::kQ6K;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    using Bytes = typename Lanes::Bytes;
    using Dot = typename Lanes::template UnsignedDot<63>;
    const int64_t row = half * kHalfRows + lane;
    const std::byte* bias = chunk.record + Int8Per256Record::six_bias_offset(M);
    const Float d = Lanes::load_f16(chunk.tile + SixBitTile::kDOffset + 2 * row);
    Float block[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      block[m] = Lanes::zero();
    }
    for (int64_t group = 0; group < 16; ++group) {
      prefetch_share<Lanes, kDType, 16, half>(chunk, lane, group);
      typename Lanes::Int dot[M];
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        dot[m] = Lanes::broadcast_int(bias + 4 * (group * M + m));
      }
      const std::byte* bytes =
          chunk.tile + half * SixBitTile::kHalfBytes + group * SixBitTile::kGroupBytes + 4 * lane;
      const Bytes b0 = Lanes::load_bytes(bytes);
      const Bytes b1 = Lanes::load_bytes(bytes + kCodeVectorBytes);
      const Bytes b2 = Lanes::load_bytes(bytes + 2 * kCodeVectorBytes);
      const Bytes codes[4] = {
          Lanes::low6(b0), Lanes::low6(b1), Lanes::low6(b2), Lanes::join_top_bits(b0, b1, b2)};
      dot_codes<Lanes, Dot, M, 4>(dot, chunk.record + 16 * group * M, [&](int64_t v) {
        return codes[v];
      });
      const Float scale = Lanes::mul(
          Lanes::to_float(
              Lanes::load_i8(chunk.tile + SixBitTile::kScaleOffset + group * kTileRows + row)
          ),
          d
      );
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        block[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, block[m]);
      }
    }
    add_super_block<Lanes, M, half>(chunk, lane, block);
  }
};

/// IQ4_XS: y = d * scale_j * level[q], groups of 32 with signed scales.
struct LevelSuperFamily {
  static constexpr DType kDType = DType::kIQ4XS;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    using Dot = typename Lanes::template SignedDot<128>;
    const int64_t row = half * kHalfRows + lane;
    const auto levels = Lanes::template level_table<Lanes::kSignedBias>(types::kIQ4Levels);
    const std::byte* bias = chunk.record + Int8Per256Record::bias32_offset(M);
    const Float d = Lanes::load_f16(chunk.tile + LevelSuperTile::kDOffset + 2 * row);
    Float block[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      block[m] = Lanes::zero();
    }
    for (int64_t group = 0; group < 8; ++group) {
      prefetch_share<Lanes, kDType, 8, half>(chunk, lane, group);
      typename Lanes::Int dot[M];
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        dot[m] = Lanes::broadcast_int(bias + 4 * (group * M + m));
      }
      const std::byte* codes = chunk.tile + group * 8 * kCodeVectorBytes + 4 * lane;
      dot_codes<Lanes, Dot, M, 8>(dot, chunk.record + 32 * group * M, [&](int64_t v) {
        const auto nibbles = Lanes::load_bytes(codes + v * kCodeVectorBytes);
        return Lanes::look_up(levels, Lanes::template nibbles<half>(nibbles));
      });
      const Float scale = Lanes::mul(
          Lanes::to_float(
              Lanes::load_i8(chunk.tile + LevelSuperTile::kScaleOffset + group * kTileRows + row)
          ),
          d
      );
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        block[m] = Lanes::fma(Lanes::to_float(dot[m]), scale, block[m]);
      }
    }
    add_super_block<Lanes, M, half>(chunk, lane, block);
  }
};

}  // namespace octet::cpu
