// The loops that all tile kernels share, as templates over an instruction set's Lanes and a family
// of weight types. Not for including outside the files that fill a MatmulKernels.
//
// Lanes (one struct per instruction set) is a vector of kLanes output rows: Float, Int (32-bit),
// Bytes (four bytes a lane) and Quad (four int8 activations for every lane), with loads, shifts,
// multiply-add and the byte dot products UnsignedDot<largest> and SignedDot<largest>, or for
// instructions that multiply small matrices a dot_rows() instead. kKeptCodes says which unpacked
// codes the first group of rows keeps for the others: 0 none, 1 those that take longest to unpack,
// 2 all but plain nibbles and bytes (measured: docs/kernels.md). A family (float_tile.h,
// block_tile.h, super_tile.h) has a kDType whose tiles it reads, kActivations, the kind of
// activations it takes, kStepValues, and
//   template <class Lanes, int M, int half> class Sums {
//     Sums(const ChunkProduct&, int64_t lane);
//     void step(int64_t i);  // values [i * kStepValues, + kStepValues) of the chunk
//     void end();
//   }
// or, where a step is one dot product of integers, its parts instead of step():
//     using Dot; static constexpr int64_t kVectors;  // code vectors of a step
//     void start(int64_t i, Int (&dot)[M]) const;    // what the dot products begin with
//     const std::byte* activations(int64_t i) const;
//     Bytes code(int64_t i, int64_t v) const;
//     static constexpr bool keeps(int64_t v);        // whether code v of a step is worth keeping
//     void finish(int64_t i, const Int (&dot)[M]);
// which adds a chunk's products for rows [half * 16 + lane, + kLanes) to the sums of M activation
// rows.
// Invariant: M only repeats the same operations for more rows; it never changes their order for a
// row.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
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
  /// Lanes::Bytes [kChunkValues / 4][kTileRows / kLanes]: unpacked codes, kept by the first group
  /// of rows for those after it.
  void* kept = nullptr;

  float* sums_of(int64_t row, int half, int64_t lane) const {
    return sums + row * kTileRows + half * kHalfRows + lane;
  }
};

/// Asks the memory for a line, in the order of the calls: compilers that shuffle requests hide from
/// the hardware that they are a stream.
OCTET_INLINE void request_line(const std::byte* line) {
  asm volatile("" : "+r"(line));
  __builtin_prefetch(line);
}

/// Asks for the lines of `ahead` that belong to part `part` of `parts` of step `step` of `steps`,
/// each line once: lines that are asked for again take the place of others in the miss buffers
/// (docs/kernels.md). Spread over the work: all at once would fill those buffers and stop the
/// arithmetic.
template <DType dtype, int64_t steps, int64_t parts = 1>
OCTET_INLINE void prefetch_share(const std::byte* ahead, int64_t step, int64_t part = 0) {
  constexpr int64_t kLines = (chunk_bytes(dtype, kChunkValues) + 63) / 64;
  if (ahead == nullptr) {
    return;
  }
  if constexpr (kLines % steps == 0) {
    constexpr int64_t kOfStep = kLines / steps;
    for (int64_t i = kOfStep * part / parts; i < kOfStep * (part + 1) / parts; ++i) {
      request_line(ahead + 64 * (step * kOfStep + i));
    }
  } else if (part == 0) {
    for (int64_t line = step * kLines / steps; line < (step + 1) * kLines / steps; ++line) {
      request_line(ahead + 64 * line);
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

/// Dot products that begin with zero, or with the M integers at `bias`.
template <typename Lanes, int M>
OCTET_INLINE void start_at_zero(typename Lanes::Int (&dot)[M]) {
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    dot[m] = Lanes::zero_int();
  }
}
template <typename Lanes, int M>
OCTET_INLINE void start_at(const std::byte* bias, typename Lanes::Int (&dot)[M]) {
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    dot[m] = Lanes::broadcast_int(bias + 4 * m);
  }
}

template <typename Lanes, int M>
OCTET_INLINE void set_zero(typename Lanes::Float (&sums)[M]) {
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    sums[m] = Lanes::zero();
  }
}

/// Sums of a chunk that start from those in memory and go back there.
template <typename Lanes, int M, int half>
OCTET_INLINE void load_sums(
    const ChunkProduct& chunk, int64_t lane, typename Lanes::Float (&sums)[M]
) {
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    sums[m] = Lanes::load(chunk.sums_of(m, half, lane));
  }
}
template <typename Lanes, int M, int half>
OCTET_INLINE void store_sums(
    const ChunkProduct& chunk, int64_t lane, const typename Lanes::Float (&sums)[M]
) {
  OCTET_UNROLL
  for (int64_t m = 0; m < M; ++m) {
    Lanes::store(chunk.sums_of(m, half, lane), sums[m]);
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

template <typename Sums>
inline constexpr bool kHasParts = requires {
  Sums::kVectors;
};

/// What a group of rows does for the codes of a chunk that are worth keeping (Sums::keeps): unpacks
/// them, unpacks and keeps them for the groups after it, or takes those that were kept.
enum class CodeUse { kUnpack, kUnpackAndKeep, kTakeKept };

/// Code vectors of a chunk.
template <typename Lanes>
inline constexpr int64_t kMostKept = kChunkValues / 4 * (kTileRows / Lanes::kLanes);

/// Code vector v of step i of `sums`, whose kLanes rows are the tile's from `first_row` on.
template <typename Lanes, CodeUse use, typename Sums>
OCTET_INLINE typename Lanes::Bytes code_vector(
    const ChunkProduct& chunk, int64_t first_row, const Sums& sums, int64_t i, int64_t v
) {
  if (use == CodeUse::kUnpack || !Sums::keeps(v)) {
    return sums.code(i, v);
  }
  const int64_t first = (i * Sums::kVectors + v) * (kTileRows / Lanes::kLanes);
  auto& kept = static_cast<typename Lanes::Bytes*>(chunk.kept)[first + first_row / Lanes::kLanes];
  if constexpr (use == CodeUse::kUnpackAndKeep) {
    kept = sums.code(i, v);
  }
  return kept;
}

template <typename Lanes, int M, CodeUse use, typename Sums>
OCTET_INLINE void take_step(const ChunkProduct& chunk, int64_t first_row, Sums& sums, int64_t i) {
  if constexpr (kHasParts<Sums>) {
    typename Lanes::Int dot[M];
    sums.start(i, dot);
    dot_codes<Lanes, typename Sums::Dot, M, Sums::kVectors>(
        dot,
        sums.activations(i),
        [&](int64_t v) { return code_vector<Lanes, use>(chunk, first_row, sums, i, v); }
    );
    sums.finish(i, dot);
  } else {
    sums.step(i);
  }
}

/// A step of both halves, vector by vector: a byte that has a nibble of each is loaded once, and so
/// are the activations.
template <typename Lanes, typename Family, int M, CodeUse use, typename Low, typename High>
OCTET_INLINE void take_step_together(const ChunkProduct& chunk, Low& low, High& high, int64_t i) {
  const std::byte* ahead = use == CodeUse::kTakeKept ? nullptr : chunk.ahead;
  constexpr int64_t kSteps = kChunkValues / Family::kStepValues;
  if constexpr (kHasParts<Low>) {
    using Dot = typename Low::Dot;
    static_assert(Dot::kRun >= Low::kVectors, "one run of the dot product is a whole step");
    typename Lanes::Int dots[2][M];
    low.start(i, dots[0]);
    high.start(i, dots[1]);
    typename Dot::Acc acc[2][M];
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      acc[0][m] = Dot::begin(dots[0][m]);
      acc[1][m] = Dot::begin(dots[1][m]);
    }
    const std::byte* activations = low.activations(i);
    OCTET_UNROLL
    for (int64_t v = 0; v < Low::kVectors; ++v) {
      prefetch_share<Family::kDType, kSteps, Low::kVectors>(ahead, i, v);
      const typename Lanes::Bytes codes[2] = {
          code_vector<Lanes, use>(chunk, 0, low, i, v),
          code_vector<Lanes, use>(chunk, kHalfRows, high, i, v)};
      OCTET_UNROLL
      for (int64_t m = 0; m < M; ++m) {
        const auto quad = Lanes::broadcast_quad(activations + 4 * (v * M + m));
        acc[0][m] = Dot::step(acc[0][m], codes[0], quad);
        acc[1][m] = Dot::step(acc[1][m], codes[1], quad);
      }
    }
    OCTET_UNROLL
    for (int64_t m = 0; m < M; ++m) {
      dots[0][m] = Dot::end(dots[0][m], acc[0][m]);
      dots[1][m] = Dot::end(dots[1][m], acc[1][m]);
    }
    low.finish(i, dots[0]);
    high.finish(i, dots[1]);
  } else {
    prefetch_share<Family::kDType, kSteps>(ahead, i);
    low.step(i);
    high.step(i);
  }
}

/// The chunk's products for all kLanes-wide parts of half `half`, one part after the other.
template <typename Lanes, typename Family, int M, CodeUse use, int half>
OCTET_INLINE void multiply_half(const ChunkProduct& chunk) {
  constexpr int64_t kSteps = kChunkValues / Family::kStepValues;
  constexpr int64_t kParts = kHalfRows / Lanes::kLanes;
  const int64_t steps = divide_up(chunk.values, Family::kStepValues);
  for (int64_t part = 0; part < kParts; ++part) {
    typename Family::template Sums<Lanes, M, half> sums(chunk, part * Lanes::kLanes);
    for (int64_t i = 0; i < steps; ++i) {
      prefetch_share<Family::kDType, 2 * kParts * kSteps>(
          chunk.ahead, (half * kParts + part) * kSteps + i
      );
      take_step<Lanes, M, use>(chunk, half * kHalfRows + part * Lanes::kLanes, sums, i);
    }
    sums.end();
  }
}

/// The same for both halves, which go through the chunk side by side, so that its lines are needed
/// in the order and at the pace in which they are asked for.
template <typename Lanes, typename Family, int M, CodeUse use>
OCTET_INLINE void multiply_halves_together(const ChunkProduct& chunk) {
  const int64_t steps = divide_up(chunk.values, Family::kStepValues);
  typename Family::template Sums<Lanes, M, 0> low(chunk, 0);
  typename Family::template Sums<Lanes, M, 1> high(chunk, 0);
  for (int64_t i = 0; i < steps; ++i) {
    take_step_together<Lanes, Family, M, use>(chunk, low, high, i);
  }
  low.end();
  high.end();
}

/// Float weights have two sums a row and half: those of both halves fit into the registers for so
/// many rows.
inline constexpr int kMostFloatRowsTogether = 4;

template <typename Lanes, typename Family, int M, CodeUse use>
void multiply_chunk(const ChunkProduct& product) noexcept {
  // A copy where codes are stored, so that compilers see that the stores do not change it.
  using Chunk =
      std::conditional_t<use == CodeUse::kUnpackAndKeep, ChunkProduct, const ChunkProduct&>;
  const Chunk chunk = product;
  constexpr bool kFits =
      kHasParts<typename Family::template Sums<Lanes, M, 0>> || M <= kMostFloatRowsTogether;
  if constexpr (Lanes::kLanes == kHalfRows && kFits) {
    multiply_halves_together<Lanes, Family, M, use>(chunk);
  } else {
    multiply_half<Lanes, Family, M, use, 0>(chunk);
    multiply_half<Lanes, Family, M, use, 1>(chunk);
  }
}

template <typename Lanes, typename Family, CodeUse use, int... indices>
constexpr std::array<MultiplyChunk, sizeof...(indices)> chunk_table(
    std::integer_sequence<int, indices...> /*rows*/
) {
  return {&multiply_chunk<Lanes, Family, indices + 1, use>...};
}

/// The functions for 1 to kGroupRows rows.
template <typename Lanes, typename Family, CodeUse use>
inline constexpr auto kChunkTable =
    chunk_table<Lanes, Family, use>(std::make_integer_sequence<int, Lanes::kGroupRows>{});

/// Whether a family has codes worth keeping.
template <typename Lanes, typename Family>
inline constexpr bool kKeepsCodes = [] {
  using Sums = typename Family::template Sums<Lanes, 1, 0>;
  if constexpr (kHasParts<Sums>) {
    for (int64_t v = 0; v < Sums::kVectors; ++v) {
      if (Sums::keeps(v)) {
        return true;
      }
    }
  }
  return false;
}();

/// The function for the group of `rows` rows from `row` on. `keeps`: there are several groups, and
/// the first keeps codes for the others.
template <typename Lanes, typename Family>
OCTET_INLINE MultiplyChunk chunk_function(bool keeps, int64_t row, int64_t rows) {
  if constexpr (kKeepsCodes<Lanes, Family>) {
    if (keeps) {
      return row == 0 ? &multiply_chunk<Lanes, Family, Lanes::kGroupRows, CodeUse::kUnpackAndKeep>
                      : kChunkTable<Lanes, Family, CodeUse::kTakeKept>[rows - 1];
    }
  }
  return kChunkTable<Lanes, Family, CodeUse::kUnpack>[rows - 1];
}

/// How far ahead of the current chunk the memory is asked for weights; one and two rows stream
/// best with less. Set by the sweeps in docs/kernels.md.
constexpr int64_t prefetch_bytes(int64_t rows) {
  return rows <= 2 ? 8192 : 12288;
}

/// The MultiplyTile of a family. Chunks outside, row groups inside: a chunk's weights come from
/// memory once and stay in the first-level cache while all rows use them. So do the codes that the
/// first of several groups keeps.
template <typename Lanes, typename Family>
void multiply_tile(const TileProduct& product) noexcept {
  typename Lanes::Bytes kept[kKeepsCodes<Lanes, Family> ? kMostKept<Lanes> : 1];
  std::memset(product.sums, 0, sizeof(float) * product.rows * kTileRows);
  constexpr ActivationKind kKind = Family::kActivations;
  const std::byte* tile = product.tile;
  const bool keeps = product.rows > Lanes::kGroupRows;
  for (int64_t chunk = 0; chunk < chunk_count(product.cols); ++chunk) {
    const int64_t values = chunk_values(product.cols, chunk);
    const int64_t bytes = chunk_bytes(Family::kDType, values);
    for (int64_t row = 0; row < product.rows; row += Lanes::kGroupRows) {
      const int64_t rows = std::min<int64_t>(Lanes::kGroupRows, product.rows - row);
      const std::byte* group = product.activations + row / Lanes::kGroupRows * product.group_bytes;
      chunk_function<Lanes, Family>(
          keeps, row, rows
      )({tile,
         group + chunk * activation_chunk_bytes(kKind, rows, kChunkValues),
         values,
         product.sums + row * kTileRows,
         row == 0 ? tile + prefetch_bytes(product.rows) : nullptr,
         kept});
    }
    tile += bytes;
  }
}

}  // namespace octet::cpu
