// The attention kernels over a lane type: one group of keys and values against several queries of
// one sequence. Splitting the work and merging groups in order is the caller's (cpu_attend.h).
// Stored rows are widened to float32 once for all queries of the tile (kv_rows_generic.h).
// Invariant: a query's numbers come from its own keys alone, in position order. Slots outside its
// range may be read (another query of the tile may need them) but their products are never added to
// anything, so even NaN there is without effect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "octet/base/divide_up.h"
#include "octet/kernels/cpu/kv_rows_generic.h"
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

/// attend_group for one storage type.
template <class L, class KvRows>
class AttendGroup {
  using Floats = typename L::Floats;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kPair = 32;  // columns of two vectors
  static constexpr int kQueries = L::kScoreQueries;
  static constexpr int kVectors = L::kScoreVectors;
  /// Keys of a block. A vector has four columns of four keys, so a sum over columns leaves only
  /// four lanes a key to be added.
  static constexpr int64_t kKeys = int64_t{4} * kVectors;
  /// Positions and columns of a block of values: it stays in the first-level cache, next to weights
  /// and sums, while all queries pass over it.
  static constexpr int64_t kValueRows = 64;
  static constexpr int64_t kValueColumns = kPair * L::kSumPairs;
  // The slots of a block are consecutive in a ring, and all of them exist.
  static_assert(kAttentionChunk % kKeys == 0 && kAttentionChunk % kValueRows == 0);
  static_assert(kAttendQueryMultiple % L::kScoreQueries == 0);
  static_assert(kAttendQueryMultiple % L::kSumQueries == 0);
  static_assert(kKeys <= kAttendStagedKeys);
  static_assert(kValueRows * kValueColumns <= kAttendStagedValues);

 public:
  explicit AttendGroup(const AttendTile& tile)
      : t_(tile),
        width_(attend_width(tile.head_dim)),
        row_bytes_(KvRows::row_bytes(width_)),
        all_(united(0, tile.count)),
        next_key_(tile.next_keys.data()) {}

  void run() {
    add_scores();
    for (int64_t q = 0; q < t_.count; ++q) {
      normalise(q);
    }
    add_values();
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

  const std::byte* row_of(const std::byte* array, int64_t position) const {
    return array + position % t_.capacity * row_bytes_;
  }

  void add_scores() {
    const int64_t tiles = t_.count / kQueries;
    const int64_t block_bytes = kKeys * row_bytes_;
    for (int64_t p = all_.begin / kKeys * kKeys; p < all_.end; p += kKeys) {
      const std::byte* keys = row_of(t_.keys, p);
      stage_keys(keys);
      Ahead ahead = {
          t_.keys_asked ? nullptr : keys + block_bytes, row_of(t_.values, p), block_bytes / tiles};
      for (int64_t q = 0; q < t_.count; q += kQueries) {
        if (!empty(clip(united(q, kQueries), {p, p + kKeys}))) {
          score(q, t_.scores + q * kAttendScoreStride + (p - t_.group_begin), ahead);
        }
        ahead.keys += ahead.keys != nullptr ? ahead.bytes : 0;
        ahead.values += ahead.bytes;
      }
    }
  }

  /// Keys of a block as floats: for four columns at a time, kVectors vectors of four keys.
  void stage_keys(const std::byte* keys) {
    for (int vector = 0; vector < kVectors; ++vector) {
      const std::byte* four = keys + int64_t{4} * vector * row_bytes_;
      const std::byte* rows[4] = {
          four, four + row_bytes_, four + 2 * row_bytes_, four + 3 * row_bytes_};
      float* to = t_.staged + vector * kLanes;
      for (int64_t c = 0; c < width_; c += kPair) {
        Floats quads[8];
        KvRows::load_keys(rows, width_, c, quads);
        unroll<8>([&](auto i) { L::store(to + i * kVectors * kLanes, quads[i]); });
        to += int64_t{8} * kVectors * kLanes;
      }
    }
  }

  /// What is asked for during a tile of scores, into the second level: keys of the next block
  /// unless they were asked for before, and values of this one. Spread over the arithmetic, because
  /// a burst fills the miss buffers.
  struct Ahead {
    const std::byte* keys;  // null: none
    const std::byte* values;
    int64_t bytes;
  };

  /// Scores of kQueries queries with the staged keys. Order of a sum: every fourth column from each
  /// of the first four (in packed order) into a lane, then (0 + 2) + (1 + 3).
  void score(int64_t query, float* scores, const Ahead& ahead) {
    Floats sums[kQueries][kVectors];
    unroll<kQueries>([&](auto q) { unroll<kVectors>([&](auto v) { sums[q][v] = L::set(0.0F); }); });
    const float* queries = t_.queries + query * width_;
    const float* keys = t_.staged;
    const int64_t step_bytes = ahead.bytes * kPair / width_;
    int64_t asked = 0;
    int64_t due = 0;
    for (int64_t begin = 0; begin < width_; begin += kPair) {
      for (due += step_bytes; asked < due; asked += kCacheLine) {
        if (ahead.keys != nullptr) {
          __builtin_prefetch(ahead.keys + asked, 0, 2);
        }
        __builtin_prefetch(ahead.values + asked, 0, 2);
      }
      for (int64_t c = begin; c < begin + kPair; c += 4, keys += kVectors * kLanes) {
        Floats key[kVectors];
        unroll<kVectors>([&](auto v) { key[v] = L::load(keys + v * kLanes); });
        unroll<kQueries>([&](auto q) {
          const Floats x = L::repeat_quad(queries + q * width_ + c);
          unroll<kVectors>([&](auto v) { sums[q][v] = L::fma(x, key[v], sums[q][v]); });
        });
      }
    }
    unroll<kQueries>([&](auto q) { L::store_quad_sums(sums[q], scores + q * kAttendScoreStride); });
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

  void add_values() {
    for (int64_t i = 0; i < t_.count * width_; i += kLanes) {
      L::store(t_.out.weighted + i, L::set(0.0F));
    }
    const int64_t lines = divide_up(std::ssize(t_.next_keys), kCacheLine);
    const int64_t blocks = divide_up(all_.end - all_.begin, kValueRows) + 1;
    const int64_t pieces = blocks * divide_up(width_, kValueColumns);
    next_lines_ = divide_up(lines, pieces * kValueRows * (kAttendQueryMultiple / L::kSumQueries));
    for (int64_t p = all_.begin / kValueRows * kValueRows; p < all_.end; p += kValueRows) {
      const KeyRange block = clip({p, p + kValueRows}, all_);
      const std::byte* rows = row_of(t_.values, block.begin);
      int64_t c = 0;
      for (; c + kValueColumns <= width_; c += kValueColumns) {
        add_block<L::kSumPairs>(block, rows, c);
      }
      for (; c < width_; c += kPair) {
        add_block<1>(block, rows, c);
      }
    }
  }

  /// Asks for a share of the next group's keys, into the second level: while values are added, no
  /// other read waits for memory.
  void ask_for_next_keys() {
    const std::byte* end = t_.next_keys.data() + t_.next_keys.size();
    for (int64_t i = 0; i < next_lines_ && next_key_ < end; ++i, next_key_ += kCacheLine) {
      __builtin_prefetch(next_key_, 0, 2);
    }
  }

  /// The columns [column, column + 32 kPairs) of the values at `block`; `rows` has its first row.
  template <int kPairs>
  void add_block(KeyRange block, const std::byte* rows, int64_t column) {
    if (t_.count <= L::kSumQueries) {  // one pass: nothing to share
      add_columns<kPairs>(0, block, column, [=, this](int64_t index, Floats(&value)[2 * kPairs]) {
        ask_for_next_keys();
        load_values<kPairs>(rows + index * row_bytes_, column, value);
      });
      return;
    }
    float* to = t_.staged;
    // The next columns of these rows, after the last ones the first of the next rows: pieces of
    // rows are nothing that hardware foresees.
    const int64_t next_column = column + kPairs * kPair;
    const int64_t ahead =
        next_column < width_ ? next_column * (row_bytes_ / width_) : kValueRows * row_bytes_;
    for (int64_t index = 0; index < block.end - block.begin; ++index) {
      Floats value[2 * kPairs];
      const std::byte* row = rows + index * row_bytes_;
      __builtin_prefetch(row + ahead);
      load_values<kPairs>(row, column, value);
      unroll<2 * kPairs>([&](auto i) { L::store(to + i * kLanes, value[i]); });
      to += int64_t{2} * kPairs * kLanes;
    }
    const float* staged = t_.staged;
    for (int64_t q = 0; q < t_.count; q += L::kSumQueries) {
      add_columns<kPairs>(q, block, column, [=, this](int64_t index, Floats(&value)[2 * kPairs]) {
        ask_for_next_keys();
        const float* from = staged + index * 2 * kPairs * kLanes;
        unroll<2 * kPairs>([&](auto i) { value[i] = L::load(from + i * kLanes); });
      });
    }
  }

  template <int kPairs>
  [[gnu::always_inline]] void load_values(
      const std::byte* row, int64_t column, Floats (&value)[2 * kPairs]
  ) const {
    unroll<kPairs>([&](auto pair) {
      KvRows::load(row, width_, column + pair * kPair, value[2 * pair], value[2 * pair + 1]);
    });
  }

  /// Adds weighted values for kSumQueries queries: together where all of them attend, else one by
  /// one. Each query's own order is that of the positions either way.
  template <int kPairs, class Load>
  void add_columns(int64_t query, KeyRange block, int64_t column, Load load) {
    KeyRange shared = block;
    for (int64_t q = query; q < query + L::kSumQueries; ++q) {
      shared = clip(shared, t_.ranges[q]);
    }
    const auto alone = [&](int64_t q, int64_t begin, int64_t end) {
      const KeyRange own = clip({begin, end}, t_.ranges[q]);
      if (!empty(own)) {
        add_rows<1, kPairs>(q, own, block.begin, column, load);
      }
    };
    if (empty(shared)) {
      for (int64_t q = query; q < query + L::kSumQueries; ++q) {
        alone(q, block.begin, block.end);
      }
      return;
    }
    for (int64_t q = query; q < query + L::kSumQueries; ++q) {
      alone(q, block.begin, shared.begin);
    }
    add_rows<L::kSumQueries, kPairs>(query, shared, block.begin, column, load);
    for (int64_t q = query; q < query + L::kSumQueries; ++q) {
      alone(q, shared.end, block.end);
    }
  }

  /// load(i, value) gives the columns of the value at position `first` + i.
  template <int kCount, int kPairs, class Load>
  void add_rows(int64_t query, KeyRange positions, int64_t first, int64_t column, Load load) {
    float* weighted = t_.out.weighted + query * width_ + column;
    const float* weights = t_.scores + query * kAttendScoreStride - t_.group_begin;
    Floats sums[kCount][2 * kPairs];
    const auto for_sums = [](auto f) {
      unroll<kCount>([&](auto q) { unroll<2 * kPairs>([&](auto i) { f(q, i); }); });
    };
    for_sums([&](auto q, auto i) { sums[q][i] = L::load(weighted + q * width_ + i * kLanes); });
    for (int64_t p = positions.begin; p < positions.end; ++p) {
      Floats value[2 * kPairs];
      load(p - first, value);
      for_sums([&](auto q, auto i) {
        const Floats weight = L::set(weights[q * kAttendScoreStride + p]);
        sums[q][i] = L::fma(weight, value[i], sums[q][i]);
      });
    }
    for_sums([&](auto q, auto i) { L::store(weighted + q * width_ + i * kLanes, sums[q][i]); });
  }

  static constexpr int64_t kCacheLine = 64;

  const AttendTile& t_;
  int64_t width_;
  int64_t row_bytes_;
  KeyRange all_;
  const std::byte* next_key_;  // the first of next_keys that was not asked for
  int64_t next_lines_ = 0;     // to ask for at a step
};

template <class L>
struct AttendCode {
  using Floats = typename L::Floats;
  static constexpr int64_t kLanes = 16;
  static constexpr int64_t kPair = 32;

  static void pack(
      const float* query, float scale, KvType type, int64_t head_dim, float* packed
  ) noexcept {
    for_rows(type, [&](auto rows) {
      for (int64_t c = 0; c < head_dim; c += kPair) {
        float plain[kPair] = {};
        const int64_t count = std::min(kPair, head_dim - c);
        for (int64_t i = 0; i < count; ++i) {
          plain[i] = query[c + i] * scale;
        }
        rows.pack_query(plain, packed + c);
      }
    });
  }

  static void group(const AttendTile& tile) noexcept {
    for_rows(tile.type, [&](auto rows) { AttendGroup<L, decltype(rows)>(tile).run(); });
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
        std::memcpy(to, from, bytes_of(width));
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
    const float factor = 1.0F / sum;
    for_rows(type, [&](auto rows) {
      for (int64_t c = 0; c < head_dim; c += kPair) {
        float plain[kPair];
        rows.unpack_value(weighted + c, plain);
        for (float& x : plain) {
          x *= factor;
        }
        std::memcpy(out + c, plain, bytes_of(std::min(kPair, head_dim - c)));
      }
    });
  }

 private:
  /// f with the row type of `type`: the one place that maps storage types to code.
  template <class F>
  static void for_rows(KvType type, F f) {
    switch (type) {
      case KvType::kF32:
        return f(F32Rows<L>());
      case KvType::kBF16:
        return f(Bf16Rows<L>());
      case KvType::kQ8:
        return f(Q8Rows<L>());
    }
  }

  static size_t bytes_of(int64_t count) { return static_cast<size_t>(count) * sizeof(float); }
};

}  // namespace octet::cpu
