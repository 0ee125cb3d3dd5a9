// The loops that all tile kernels share, as templates over an instruction set's Lanes and a family
// of weight types. Not for including outside the files that fill a MatmulKernels.
//
// Lanes (one struct per instruction set) is a vector of kLanes output rows: Float, Int (32-bit),
// Bytes (four bytes a lane) and Quad (four int8 activations for every lane), with loads, shifts,
// multiply-add and the byte dot products UnsignedDot<largest> and SignedDot<largest>, or for
// instructions that multiply small matrices a dot_rows() instead. A family
// (float_tile.h, block_tile.h, super_tile.h) has
//   template <class Lanes, int M, int half> static void accumulate(const ChunkProduct&, int64_t
//   lane)
// which adds a chunk's products for rows [half * 16 + lane, + kLanes) to the sums of M activation
// rows, a kDType whose tiles it reads and kActivations, the kind of activations it takes.
// Invariant: M only repeats the same operations for more rows; it never changes their order for a
// row.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "octet/kernels/cpu/matmul/activation_layout.h"
#include "octet/kernels/cpu/matmul/tile_layout.h"

// Vectors that are registers need their loops unrolled, so that arrays of them become registers.
// Vectors that are arrays (portable/) must not be: a file that uses them defines
// OCTET_VECTORS_ARE_ARRAYS first.
#ifdef OCTET_VECTORS_ARE_ARRAYS
#define OCTET_UNROLL
#else
#define OCTET_UNROLL _Pragma("GCC unroll 16")
#endif
#define OCTET_INLINE [[gnu::always_inline]] inline

namespace octet::cpu {

struct ChunkProduct {
  const std::byte* tile = nullptr;    // the chunk inside the tile
  const std::byte* record = nullptr;  // the chunk's activations
  int64_t values = 0;
  float* sums = nullptr;  // [M, kTileRows]
  /// Weights to ask the memory for during this chunk; null when an earlier group of rows did.
  const std::byte* ahead = nullptr;

  float* sums_of(int64_t row, int half, int64_t lane) const {
    return sums + row * kTileRows + half * kHalfRows + lane;
  }
};

/// Asks for the share of `ahead` that belongs to step `step` of `steps` steps of one accumulate().
/// Spread over the work: all lines at once would fill the miss buffers and stop the arithmetic.
template <typename Lanes, DType dtype, int steps, int half>
OCTET_INLINE void prefetch_share(const ChunkProduct& chunk, int64_t lane, int64_t step) {
  constexpr int64_t kSteps = kTileRows / Lanes::kLanes * steps;
  constexpr int64_t kLines = (chunk_bytes(dtype, kChunkValues) / 64 + kSteps - 1) / kSteps;
  if (chunk.ahead != nullptr) {
    const int64_t all_steps = (half * kHalfRows + lane) / Lanes::kLanes * steps + step;
    OCTET_UNROLL
    for (int64_t i = 0; i < kLines; ++i) {
      __builtin_prefetch(chunk.ahead + 64 * (all_steps * kLines + i));
    }
  }
}

using MultiplyChunk = void (*)(const ChunkProduct&) noexcept;

/// Whether the instruction set multiplies several activation rows at once, in a dot_rows() of its
/// own.
template <typename Lanes>
inline constexpr bool kHasDotRows =
    requires(typename Lanes::Int (&total)[1], typename Lanes::Bytes (*codes)(int64_t)) {
  Lanes::template dot_rows<1, 8>(total, nullptr, codes);
};

/// total[m] += dot products of `vectors` code vectors with the activations of M rows. codes(v)
/// gives code vector v.
template <typename Lanes, typename Dot, int M, int64_t vectors, typename Codes>
OCTET_INLINE void dot_codes(
    typename Lanes::Int (&total)[M], const std::byte* activations, Codes codes
) {
  if constexpr (kHasDotRows<Lanes>) {
    Lanes::template dot_rows<M, vectors>(total, activations, codes);
    return;
  }
  constexpr int64_t kRun = std::min<int64_t>(vectors, Dot::kRun);
  static_assert(vectors % kRun == 0);
  OCTET_UNROLL
  for (int64_t first = 0; first < vectors; first += kRun) {
    typename Dot::Acc acc[M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      acc[m] = Dot::begin(total[m]);
    }
    OCTET_UNROLL
    for (int64_t v = first; v < first + kRun; ++v) {
      const typename Lanes::Bytes w = codes(v);
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        acc[m] = Dot::step(acc[m], w, Lanes::broadcast_quad(activations + 4 * (v * M + m)));
      }
    }
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      total[m] = Dot::end(total[m], acc[m]);
    }
  }
}

/// sums += even + odd: how a family ends that keeps two sums a row, for more independent chains.
template <typename Lanes, int M, int half>
OCTET_INLINE void add_even_and_odd(
    const ChunkProduct& chunk,
    int64_t lane,
    const typename Lanes::Float (&even)[M],
    const typename Lanes::Float (&odd)[M]
) {
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    float* sum = chunk.sums_of(m, half, lane);
    Lanes::store(sum, Lanes::add(Lanes::load(sum), Lanes::add(even[m], odd[m])));
  }
}

template <typename Lanes, typename Family, int M>
void multiply_chunk(const ChunkProduct& chunk) noexcept {
  for (int64_t lane = 0; lane < kHalfRows; lane += Lanes::kLanes) {
    Family::template accumulate<Lanes, M, 0>(chunk, lane);
  }
  for (int64_t lane = 0; lane < kHalfRows; lane += Lanes::kLanes) {
    Family::template accumulate<Lanes, M, 1>(chunk, lane);
  }
}

template <typename Lanes, typename Family, int... indices>
constexpr std::array<MultiplyChunk, sizeof...(indices)> chunk_table(
    std::integer_sequence<int, indices...> /*rows*/
) {
  return {&multiply_chunk<Lanes, Family, indices + 1>...};
}

/// How far ahead of the current chunk the memory is asked for weights; one and two rows stream
/// best with less. Set by the sweeps in docs/kernels.md.
constexpr int64_t prefetch_bytes(int64_t rows) {
  return rows <= 2 ? 6144 : 8192;
}

/// The MultiplyTile of a family. Chunks outside, row groups inside: a chunk's weights come from
/// memory once and stay in the first-level cache while all rows use them.
template <typename Lanes, typename Family>
void multiply_tile(const TileProduct& product) noexcept {
  static constexpr auto kTable =
      chunk_table<Lanes, Family>(std::make_integer_sequence<int, Lanes::kGroupRows>{});
  std::memset(product.sums, 0, sizeof(float) * product.rows * kTileRows);
  constexpr ActivationKind kKind = Family::kActivations;
  const std::byte* tile = product.tile;
  for (int64_t chunk = 0; chunk < chunk_count(product.cols); ++chunk) {
    const int64_t values = chunk_values(product.cols, chunk);
    const int64_t bytes = chunk_bytes(Family::kDType, values);
    for (int64_t row = 0; row < product.rows; row += Lanes::kGroupRows) {
      const int64_t rows = std::min<int64_t>(Lanes::kGroupRows, product.rows - row);
      const std::byte* group = product.activations + row / Lanes::kGroupRows * product.group_bytes;
      kTable[rows - 1](
          {tile,
           group + chunk * activation_chunk_bytes(kKind, rows, kChunkValues),
           values,
           product.sums + row * kTileRows,
           row == 0 ? tile + prefetch_bytes(product.rows) : nullptr}
      );
    }
    tile += bytes;
  }
}

}  // namespace octet::cpu
