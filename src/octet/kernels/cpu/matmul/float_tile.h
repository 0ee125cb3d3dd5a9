// Tile kernels of the float weight types. The values of even and of odd k have a sum each inside a
// chunk, so that two multiply-adds are in flight even for one row.
#pragma once

#include "octet/kernels/cpu/matmul/tile_kernel.h"

namespace octet::cpu {

template <DType dtype>
struct FloatFamily {
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  template <typename Lanes, int M, int half>
  OCTET_INLINE static void accumulate(const ChunkProduct& chunk, int64_t lane) {
    using Float = typename Lanes::Float;
    Float even[M];
    Float odd[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      even[m] = Lanes::zero();
      odd[m] = Lanes::zero();
    }
    const std::byte* activations = chunk.record;
    const int64_t first_row = half * kHalfRows + lane;
    for (int64_t k = 0; k < chunk.values; k += 2) {
      prefetch_share<Lanes, dtype, kChunkValues / 2, half>(chunk, lane, k / 2);
      const auto [w0, w1] = load_pair<Lanes>(chunk, k, first_row);
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        even[m] = Lanes::fma(w0, Lanes::broadcast(activations + 4 * m), even[m]);
        odd[m] = Lanes::fma(w1, Lanes::broadcast(activations + 4 * (M + m)), odd[m]);
      }
      activations += int64_t{8} * M;
    }
    add_even_and_odd<Lanes, M, half>(chunk, lane, even, odd);
  }

 private:
  template <typename Lanes>
  struct Pair {
    typename Lanes::Float first;
    typename Lanes::Float second;
  };

  /// Values k and k + 1 of kLanes rows from `first_row`; zero for a value past an odd end.
  template <typename Lanes>
  OCTET_INLINE static Pair<Lanes> load_pair(
      const ChunkProduct& chunk, int64_t k, int64_t first_row
  ) {
    if constexpr (dtype == DType::kBF16) {
      const auto pair = Lanes::load_bytes(chunk.tile + (k / 2 * kTileRows + first_row) * 4);
      return {Lanes::low_bf16(pair), Lanes::high_bf16(pair)};
    } else {
      const std::byte* weights = chunk.tile + (k * kTileRows + first_row) * kValueBytes;
      const bool has_second = k + 1 < chunk.values;
      return {
          load_value<Lanes>(weights),
          has_second ? load_value<Lanes>(weights + kTileRows * kValueBytes) : Lanes::zero()};
    }
  }

  template <typename Lanes>
  OCTET_INLINE static typename Lanes::Float load_value(const std::byte* weights) {
    if constexpr (dtype == DType::kF16) {
      return Lanes::load_f16(weights);
    } else {
      return Lanes::load(reinterpret_cast<const float*>(weights));
    }
  }

  static constexpr int kValueBytes = dtype == DType::kF32 ? 4 : 2;
};

}  // namespace octet::cpu
