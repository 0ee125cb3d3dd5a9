// Tile kernels of the float weight types. The values of even and of odd k have a sum each inside a
// chunk, so that two multiply-adds are in flight even for one row.
#pragma once

#include "octet/kernels/cpu/matmul/tile_kernel.h"

namespace octet::cpu {

template <DType dtype>
struct FloatFamily {
  static constexpr DType kDType = dtype;
  static constexpr ActivationKind kActivations = activation_kind(kDType);

  static constexpr int64_t kStepValues = 2;

  template <typename Lanes, int M, int half>
  class Sums {
   public:
    OCTET_INLINE Sums(const ChunkProduct& chunk, int64_t lane)
        : chunk_(chunk), lane_(lane), activations_(chunk.record) {
      set_zero<Lanes>(even_);
      set_zero<Lanes>(odd_);
    }

    OCTET_INLINE void step(int64_t i) {
      const auto [w0, w1] = load_pair<Lanes>(chunk_, 2 * i, half * kHalfRows + lane_);
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        even_[m] = Lanes::fma(w0, Lanes::broadcast(activations_ + 4 * m), even_[m]);
        odd_[m] = Lanes::fma(w1, Lanes::broadcast(activations_ + 4 * (M + m)), odd_[m]);
      }
      activations_ += int64_t{8} * M;
    }

    OCTET_INLINE void end() { add_even_and_odd<Lanes, M, half>(chunk_, lane_, even_, odd_); }

   private:
    const ChunkProduct& chunk_;
    int64_t lane_;
    const std::byte* activations_;
    typename Lanes::Float even_[M];
    typename Lanes::Float odd_[M];
  };

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
