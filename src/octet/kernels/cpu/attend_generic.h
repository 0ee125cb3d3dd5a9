// The attention kernels over a lane type: one group of keys and values against several queries of
// one sequence. Splitting the work and merging groups in order is the caller's (cpu_attend.h).
// Invariant: a query's numbers come from its own keys alone, in position order. Slots outside its
// range may be read (another query of the tile may need them) but their products are never added to
// anything, so even NaN there is without effect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "octet/kernels/cpu/vector_kernels.h"
#include "octet/kernels/cpu/vector_math.h"

namespace octet::cpu {

/// f(0), ..., f(kCount - 1) with constant arguments and no loop: arrays of accumulators indexed by
/// them stay in registers (GCC unrolls loops too late for that).
template <int kCount, class F>
[[gnu::always_inline]] inline void unroll(F f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    (f(std::integral_constant<int, kIndex>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

/// Keys and values are read 32 columns at a time as two vectors. For bfloat16 these are the even
/// and the odd columns (one instruction each), so packed queries and weighted sums have the even
/// columns of every 32 before the odd ones.
template <class L>
struct Bf16Columns {
  using Element = uint16_t;
  using Raw = typename L::Raw;
  static Raw load(const Element* from) { return L::load_raw(from); }
  static typename L::Floats first(const Raw& raw) { return L::even(raw); }
  static typename L::Floats second(const Raw& raw) { return L::odd(raw); }
  /// Column, within 32, of lane i of the first and of the second vector.
  static constexpr int64_t first_column(int64_t i) { return 2 * i; }
  static constexpr int64_t second_column(int64_t i) { return 2 * i + 1; }
};

template <class L>
struct F32Columns {
  using Element = float;
  struct Raw {
    typename L::Floats low;
    typename L::Floats high;
  };
  static Raw load(const Element* from) { return {L::load(from), L::load(from + 16)}; }
  static typename L::Floats first(const Raw& raw) { return raw.low; }
  static typename L::Floats second(const Raw& raw) { return raw.high; }
  static constexpr int64_t first_column(int64_t i) { return i; }
  static constexpr int64_t second_column(int64_t i) { return i + 16; }
};

/// attend_group for one storage type.
template <class L, class Columns>
class AttendGroup {
  using Floats = typename L::Floats;
  using Raw = typename Columns::Raw;
  using Element = typename Columns::Element;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kPair = 32;  // columns of two vectors
  static constexpr int64_t kCacheLine = 64 / sizeof(Element);
  static constexpr int kQueries = L::kScoreQueries;
  static constexpr int kKeys = L::kScoreKeys;
  /// Keys whose rows stay in the first-level cache while all queries pass over them. Divides
  /// kAttentionChunk, so that the slots of a block are consecutive in a ring.
  static constexpr int64_t kBlock = 32;
  static_assert(kAttentionChunk % kBlock == 0 && kBlock % L::kScoreKeys == 0);
  static_assert(kAttendQueryMultiple % L::kScoreQueries == 0);
  static_assert(kAttendQueryMultiple % L::kSumQueries == 0);

 public:
  explicit AttendGroup(const AttendTile& tile) : t_(tile), width_(attend_width(tile.head_dim)) {}

  void run() {
    for_blocks([this](KeyRange block) {
      const Element* keys = rows_of(t_.keys, block) - block.begin * t_.head_dim;
      const Element* values = rows_of(t_.values, block) - block.begin * t_.head_dim;
      for (int64_t q = 0; q < t_.count; q += kQueries) {
        score(q, clip(united(q, kQueries), block), keys, q == 0 ? values : nullptr);
      }
    });
    for (int64_t q = 0; q < t_.count; ++q) {
      normalise(q);
    }
    for (int64_t i = 0; i < t_.count * width_; i += kLanes) {
      L::store(t_.out.weighted + i, L::set(0.0F));
    }
    for_blocks([this](KeyRange block) {
      const Element* values = rows_of(t_.values, block) - block.begin * t_.head_dim;
      for (int64_t q = 0; q < t_.count; q += L::kSumQueries) {
        add_values(q, block, values);
      }
    });
  }

 private:
  static KeyRange clip(KeyRange a, KeyRange b) {
    return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
  }
  static bool empty(KeyRange range) { return range.begin >= range.end; }

  /// The positions that any of `count` queries from `query` on needs.
  KeyRange united(int64_t query, int64_t count) const {
    KeyRange all{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
    for (int64_t q = query; q < query + count; ++q) {
      if (!empty(t_.ranges[q])) {
        all = {std::min(all.begin, t_.ranges[q].begin), std::max(all.end, t_.ranges[q].end)};
      }
    }
    return all;
  }

  template <class F>
  void for_blocks(F f) const {
    const KeyRange all = united(0, t_.count);
    if (empty(all)) {
      return;
    }
    for (int64_t begin = all.begin / kBlock * kBlock; begin < all.end; begin += kBlock) {
      f(KeyRange{begin, begin + kBlock});
    }
  }

  const Element* rows_of(const std::byte* data, KeyRange block) const {
    return reinterpret_cast<const Element*>(data) + block.begin % t_.capacity * t_.head_dim;
  }

  static Raw load_part(const Element* from, int64_t count) {
    Element padded[kPair] = {};
    std::memcpy(padded, from, static_cast<size_t>(count) * sizeof(Element));
    return Columns::load(padded);
  }

  /// Scores of kScoreQueries queries at `positions`; `keys` is where position 0 would be. Values of
  /// the same positions are asked for meanwhile, unless null: their rows are read in pieces later,
  /// which no hardware prefetcher follows.
  void score(int64_t query, KeyRange positions, const Element* keys, const Element* values) {
    for (int64_t p = positions.begin; p < positions.end; p += kKeys) {
      const Element* rows[kKeys];
      for (int k = 0; k < kKeys; ++k) {
        // Past the end: the last key again, whose score is overwritten or unused.
        const int64_t row = std::min(p + k, positions.end - 1) * t_.head_dim;
        rows[k] = keys + row;
        if (values != nullptr) {
          prefetch_row(values + row);
        }
      }
      score_tile(query, rows, t_.scores + query * kAttendScoreStride + (p - t_.group_begin));
    }
  }

  void prefetch_row(const Element* row) const {
    for (int64_t c = 0; c < t_.head_dim; c += kCacheLine) {
      __builtin_prefetch(row + c, 0, 2);  // to the second level
    }
  }

  void score_tile(int64_t query, const Element* const (&rows)[L::kScoreKeys], float* scores) {
    Floats sums[kQueries][kKeys];
    unroll<kQueries>([&](auto q) { unroll<kKeys>([&](auto k) { sums[q][k] = L::set(0.0F); }); });
    const float* queries = t_.queries + query * width_;
    int64_t c = 0;
    for (; c + kPair <= t_.head_dim; c += kPair) {
      add_products(queries + c, sums, [&](int k) { return Columns::load(rows[k] + c); });
    }
    if (c < t_.head_dim) {
      const int64_t left = t_.head_dim - c;
      add_products(queries + c, sums, [&](int k) { return load_part(rows[k] + c, left); });
    }
    store_scores(sums, scores);
  }

  template <class Load>
  [[gnu::always_inline]] void add_products(
      const float* queries, Floats (&sums)[kQueries][kKeys], Load load
  ) const {
    Raw raw[kKeys];
    unroll<kKeys>([&](auto k) { raw[k] = load(k); });
    unroll<2>([&](auto half) {
      Floats key[kKeys];
      unroll<kKeys>([&](auto k) {
        key[k] = half == 0 ? Columns::first(raw[k]) : Columns::second(raw[k]);
      });
      unroll<kQueries>([&](auto q) {
        const Floats x = L::load(queries + q * width_ + half * kLanes);
        unroll<kKeys>([&](auto k) { sums[q][k] = L::fma(x, key[k], sums[q][k]); });
      });
    });
  }

  void store_scores(const Floats (&sums)[kQueries][kKeys], float* scores) {
    float products[kQueries][kKeys];
    L::sums(sums, products);
    for (int q = 0; q < kQueries; ++q) {
      for (int k = 0; k < kKeys; ++k) {
        scores[q * kAttendScoreStride + k] = products[q][k] * t_.scale;
      }
    }
  }

  /// Scores become weights exp(score - maximum).
  void normalise(int64_t query) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const KeyRange range = t_.ranges[query];
    if (empty(range)) {
      t_.out.maximum[query] = kNever;
      t_.out.sum[query] = 0.0F;
      return;
    }
    float* scores = t_.scores + query * kAttendScoreStride;
    const int64_t first = range.begin - t_.group_begin;
    const int64_t last = range.end - t_.group_begin;
    const int64_t begin = first / kLanes * kLanes;
    const int64_t end = (last + kLanes - 1) / kLanes * kLanes;
    std::fill(scores + begin, scores + first, kNever);
    std::fill(scores + last, scores + end, kNever);

    Floats best = L::set(kNever);
    for (int64_t i = begin; i < end; i += kLanes) {
      best = L::max(L::load(scores + i), best);
    }
    float lanes[kLanes];
    L::store(lanes, best);
    const float maximum = *std::max_element(lanes, lanes + kLanes);

    Floats sum = L::set(0.0F);
    for (int64_t i = begin; i < end; i += kLanes) {
      const Floats weight =
          VectorMath<L>::exponential(L::sub(L::load(scores + i), L::set(maximum)));
      L::store(scores + i, weight);
      sum = L::add(sum, weight);
    }
    t_.out.maximum[query] = maximum;
    t_.out.sum[query] = L::sum(sum);
  }

  /// Adds the weighted values of a block for kSumQueries queries: together where all of them
  /// attend, else one by one. Each query's own order is that of the positions either way.
  void add_values(int64_t query, KeyRange block, const Element* values) {
    KeyRange shared = block;
    for (int64_t q = query; q < query + L::kSumQueries; ++q) {
      shared = clip(shared, t_.ranges[q]);
    }
    if (empty(shared)) {
      for (int64_t q = query; q < query + L::kSumQueries; ++q) {
        add_rows<1>(q, clip(block, t_.ranges[q]), values);
      }
      return;
    }
    for (int64_t q = query; q < query + L::kSumQueries; ++q) {
      add_rows<1>(q, {clip(block, t_.ranges[q]).begin, shared.begin}, values);
    }
    add_rows<L::kSumQueries>(query, shared, values);
    for (int64_t q = query; q < query + L::kSumQueries; ++q) {
      add_rows<1>(q, {shared.end, clip(block, t_.ranges[q]).end}, values);
    }
  }

  template <int kCount>
  void add_rows(int64_t query, KeyRange positions, const Element* values) {
    if (empty(positions)) {
      return;
    }
    constexpr int64_t kStep = kPair * L::kSumPairs;
    int64_t c = 0;
    for (; c + kStep <= t_.head_dim; c += kStep) {
      add_columns<kCount, L::kSumPairs>(query, positions, c, [=](int64_t row, int64_t column) {
        return Columns::load(values + row + column);
      });
    }
    for (; c + kPair <= t_.head_dim; c += kPair) {
      add_columns<kCount, 1>(query, positions, c, [=](int64_t row, int64_t column) {
        return Columns::load(values + row + column);
      });
    }
    if (c < t_.head_dim) {
      const int64_t left = t_.head_dim - c;
      add_columns<kCount, 1>(query, positions, c, [=](int64_t row, int64_t column) {
        return load_part(values + row + column, left);
      });
    }
  }

  template <int kCount, int kPairs, class Load>
  void add_columns(int64_t query, KeyRange positions, int64_t column, Load load) {
    float* weighted = t_.out.weighted + query * width_ + column;
    const float* weights = t_.scores + query * kAttendScoreStride - t_.group_begin;
    Floats sums[kCount][2 * kPairs];
    const auto for_sums = [](auto f) {
      unroll<kCount>([&](auto q) { unroll<2 * kPairs>([&](auto i) { f(q, i); }); });
    };
    for_sums([&](auto q, auto i) { sums[q][i] = L::load(weighted + q * width_ + i * kLanes); });
    for (int64_t p = positions.begin; p < positions.end; ++p) {
      Floats value[2 * kPairs];
      unroll<kPairs>([&](auto pair) {
        const Raw raw = load(p * t_.head_dim, column + pair * kPair);
        value[2 * pair] = Columns::first(raw);
        value[2 * pair + 1] = Columns::second(raw);
      });
      for_sums([&](auto q, auto i) {
        const Floats weight = L::set(weights[q * kAttendScoreStride + p]);
        sums[q][i] = L::fma(weight, value[i], sums[q][i]);
      });
    }
    for_sums([&](auto q, auto i) { L::store(weighted + q * width_ + i * kLanes, sums[q][i]); });
  }

  const AttendTile& t_;
  int64_t width_;
};

template <class L>
struct AttendCode {
  using Floats = typename L::Floats;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kPair = 32;

  static void pack(const float* query, KvType type, int64_t head_dim, float* packed) noexcept {
    if (type == KvType::kBF16) {
      pack_for<Bf16Columns<L>>(query, head_dim, packed);
    } else {
      pack_for<F32Columns<L>>(query, head_dim, packed);
    }
  }

  static void group(const AttendTile& tile) noexcept {
    if (tile.type == KvType::kBF16) {
      AttendGroup<L, Bf16Columns<L>>(tile).run();
    } else {
      AttendGroup<L, F32Columns<L>>(tile).run();
    }
  }

  static void merge(
      const AttendState& state, const AttendState& next, int64_t count, int64_t width
  ) noexcept {
    for (int64_t q = 0; q < count; ++q) {
      float* to = state.weighted + q * width;
      const float* from = next.weighted + q * width;
      if (next.sum[q] == 0.0F) {
        continue;
      }
      if (state.sum[q] == 0.0F) {
        state.maximum[q] = next.maximum[q];
        state.sum[q] = next.sum[q];
        std::memcpy(to, from, static_cast<size_t>(width) * sizeof(float));
        continue;
      }
      const float maximum = std::max(state.maximum[q], next.maximum[q]);
      const Floats keep = VectorMath<L>::exponential(L::set(state.maximum[q] - maximum));
      const Floats take = VectorMath<L>::exponential(L::set(next.maximum[q] - maximum));
      const auto mix = [&](Floats old, Floats added) {
        return L::fma(old, keep, L::mul(added, take));
      };
      for (int64_t c = 0; c < width; c += kLanes) {
        L::store(to + c, mix(L::load(to + c), L::load(from + c)));
      }
      float sum[kLanes];
      L::store(sum, mix(L::set(state.sum[q]), L::set(next.sum[q])));
      state.maximum[q] = maximum;
      state.sum[q] = sum[0];
    }
  }

  static void finish(
      const float* weighted, float sum, KvType type, int64_t head_dim, float* out
  ) noexcept {
    if (type == KvType::kBF16) {
      finish_for<Bf16Columns<L>>(weighted, 1.0F / sum, head_dim, out);
    } else {
      finish_for<F32Columns<L>>(weighted, 1.0F / sum, head_dim, out);
    }
  }

 private:
  template <class Columns>
  static void pack_for(const float* query, int64_t head_dim, float* packed) {
    for (int64_t c = 0; c < head_dim; c += kPair) {
      float plain[kPair] = {};
      std::memcpy(plain, query + c, bytes_of(std::min(kPair, head_dim - c)));
      for (int64_t i = 0; i < kLanes; ++i) {
        packed[c + i] = plain[Columns::first_column(i)];
        packed[c + kLanes + i] = plain[Columns::second_column(i)];
      }
    }
  }

  template <class Columns>
  static void finish_for(const float* weighted, float factor, int64_t head_dim, float* out) {
    for (int64_t c = 0; c < head_dim; c += kPair) {
      float plain[kPair];
      for (int64_t i = 0; i < kLanes; ++i) {
        plain[Columns::first_column(i)] = weighted[c + i] * factor;
        plain[Columns::second_column(i)] = weighted[c + kLanes + i] * factor;
      }
      std::memcpy(out + c, plain, bytes_of(std::min(kPair, head_dim - c)));
    }
  }

  static size_t bytes_of(int64_t count) { return static_cast<size_t>(count) * sizeof(float); }
};

}  // namespace octet::cpu
