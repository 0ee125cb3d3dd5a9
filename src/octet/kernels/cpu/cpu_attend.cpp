#include "octet/kernels/cpu/cpu_attend.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "octet/base/check.h"

namespace octet::cpu {
namespace {

/// Queries that share a pass over keys: enough to make the pass compute-bound, few enough that
/// queries, scores and sums stay in the second-level cache next to a group of keys and values.
constexpr int64_t kUnitQueries = 32;
/// With fewer units for each thread than this, units are split into groups to keep all threads
/// busy.
constexpr int64_t kUnitsPerThread = 4;
/// Bounds the memory of split units: their groups run in waves.
constexpr int64_t kWaveFloats = int64_t{1} << 20;
/// Multiply-adds below which starting the other threads costs more than it gains.
constexpr int64_t kInlineWork = 100'000;

int64_t round_up(int64_t x, int64_t step) {
  return (x + step - 1) / step * step;
}

AttendState state_at(float* floats, int64_t padded_queries) {
  const int64_t scalars = round_up(padded_queries, 16);
  return {floats, floats + scalars, floats + 2 * scalars};
}

int64_t state_floats(int64_t padded_queries, int64_t width) {
  return 2 * round_up(padded_queries, 16) + padded_queries * width;
}

KeyRange united(std::span<const KeyRange> ranges) {
  KeyRange all = ranges.front();
  for (const KeyRange& range : ranges) {
    OCTET_CHECK(range.begin >= 0 && range.begin < range.end);
    all = {std::min(all.begin, range.begin), std::max(all.end, range.end)};
  }
  return all;
}

/// The keys of a group, as far as they are consecutive in the ring.
std::span<const std::byte> keys_of_group(const AttendTile& tile, int64_t group) {
  const int64_t slot = group * kAttendGroup % tile.capacity;
  const int64_t row_bytes = kv_row_bytes(tile.type, tile.head_dim);
  const int64_t rows = std::min(kAttendGroup, tile.capacity - slot);
  return {tile.keys + slot * row_bytes, static_cast<size_t>(rows * row_bytes)};
}

void check_segment(const AttendSegment& segment, ConstRows q, int heads) {
  const KvView& kv = segment.kv;
  OCTET_CHECK(kv.kv_heads > 0 && heads % kv.kv_heads == 0);
  OCTET_CHECK(q.cols == static_cast<int64_t>(heads) * kv.head_dim);
  OCTET_CHECK(segment.first_row >= 0);
  OCTET_CHECK(segment.first_row + static_cast<int64_t>(segment.ranges.size()) <= q.rows);
  if (!segment.ranges.empty()) {
    const KeyRange all = united(segment.ranges);
    OCTET_CHECK(all.end - all.begin <= kv.capacity);
    OCTET_CHECK(kv.capacity % kAttentionChunk == 0);
  }
}

}  // namespace

int64_t CpuAttend::Unit::padded_queries() const {
  return round_up(queries(), kAttendQueryMultiple);
}

CpuAttend::CpuAttend(const VectorKernels& kernels, ThreadPool& pool)
    : kernels_(kernels),
      pool_(pool),
      threads_(static_cast<size_t>(pool.threads())),
      work_(pool.threads()) {}

void CpuAttend::attend(
    ConstRows q, int heads, float scale, std::span<const AttendSegment> segments, Rows out
) {
  OCTET_CHECK(q.rows == out.rows && q.cols == out.cols);
  for (const AttendSegment& segment : segments) {
    check_segment(segment, q, heads);
    OCTET_CHECK(segment.kv.head_dim == segments.front().kv.head_dim);
  }
  Call call;
  call.q = q;
  call.heads = heads;
  call.scale = scale;
  call.out = out;
  plan(call, segments);
  if (units_.empty()) {
    return;
  }
  const auto enough = static_cast<size_t>(kUnitsPerThread * pool_.threads());
  if (pool_.threads() == 1 || call.inline_only || units_.size() >= enough) {
    run_whole_units(call);
  } else {
    run_split_units(call);
  }
}

int64_t CpuAttend::scratch_bytes() const {
  int64_t bytes = states_.bytes();
  for (const ThreadScratch& scratch : threads_) {
    bytes += scratch.packed.bytes() + scratch.scores.bytes() + scratch.staged.bytes() +
             scratch.states.bytes();
  }
  return bytes;
}

void CpuAttend::plan(Call& call, std::span<const AttendSegment> segments) {
  units_.clear();
  for (ThreadScratch& scratch : threads_) {
    scratch.packed_unit = nullptr;
    scratch.asked_unit = nullptr;
  }
  int64_t work = 0;
  for (const AttendSegment& segment : segments) {
    if (segment.ranges.empty()) {
      continue;
    }
    call.width = attend_width(segment.kv.head_dim);
    add_units(call, segment);
    for (const KeyRange& range : segment.ranges) {
      work += (range.end - range.begin) * call.heads * segment.kv.head_dim * 2;
    }
  }
  call.inline_only = work < kInlineWork;
  for (const Unit& unit : units_) {
    call.state_floats =
        std::max(call.state_floats, state_floats(unit.padded_queries(), call.width));
  }
}

void CpuAttend::add_units(const Call& call, const AttendSegment& segment) {
  const int64_t heads = call.heads / segment.kv.kv_heads;
  const auto rows = static_cast<int64_t>(segment.ranges.size());
  const int64_t most_rows = std::max<int64_t>(1, kUnitQueries / heads);
  const int64_t tiles = (rows + most_rows - 1) / most_rows;
  for (int kv_head = 0; kv_head < segment.kv.kv_heads; ++kv_head) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      Unit unit;
      unit.segment = &segment;
      unit.kv_head = kv_head;
      unit.first_row = rows * tile / tiles;
      unit.rows = rows * (tile + 1) / tiles - unit.first_row;
      unit.heads = heads;
      const KeyRange keys = united(segment.ranges.subspan(
          static_cast<size_t>(unit.first_row), static_cast<size_t>(unit.rows)
      ));
      unit.first_group = keys.begin / kAttendGroup;
      unit.last_group = (keys.end - 1) / kAttendGroup + 1;
      units_.push_back(unit);
    }
  }
}

/// Each thread packs the queries of the unit that it works on: cheaper than a meeting of all
/// threads, and the packed queries are in its own caches.
const float* CpuAttend::packed_queries(const Call& call, const Unit& unit, ThreadScratch& scratch)
    const {
  const int64_t count = unit.padded_queries();
  float* packed = scratch.packed.floats(count * call.width);
  if (scratch.packed_unit == &unit) {
    return packed;
  }
  scratch.packed_unit = &unit;
  const KvView& kv = unit.segment->kv;
  float* to = packed;
  for (int64_t r = 0; r < unit.rows; ++r) {
    const float* row = call.q.row(unit.segment->first_row + unit.first_row + r) +
                       unit.kv_head * unit.heads * kv.head_dim;
    for (int64_t h = 0; h < unit.heads; ++h, to += call.width) {
      kernels_.attend_pack(row + h * kv.head_dim, call.scale, kv.type, kv.head_dim, to);
    }
  }
  std::fill(to, packed + count * call.width, 0.0F);
  return packed;
}

void CpuAttend::run_whole_units(const Call& call) {
  share(call, static_cast<int64_t>(units_.size()), [&](int64_t task, int thread) {
    const Unit& unit = units_[static_cast<size_t>(task)];
    const int64_t count = unit.padded_queries();
    ThreadScratch& scratch = threads_[static_cast<size_t>(thread)];
    float* floats = scratch.states.floats(2 * call.state_floats);
    const AttendState state = state_at(floats, count);
    const AttendState next = state_at(floats + call.state_floats, count);
    std::fill_n(state.sum, count, 0.0F);
    for (int64_t group = unit.first_group; group < unit.last_group; ++group) {
      attend_group(call, unit, group, thread, next);
      kernels_.attend_merge(state, next, count, call.width);
    }
    finish(call, unit, state);
  });
}

void CpuAttend::run_split_units(const Call& call) {
  const auto units = static_cast<int64_t>(units_.size());
  int64_t most_groups = 0;
  for (const Unit& unit : units_) {
    most_groups = std::max(most_groups, unit.last_group - unit.first_group);
  }
  const int64_t wave =
      std::clamp<int64_t>(kWaveFloats / (units * call.state_floats), 1, most_groups);
  // A state for each unit, then one for each of its groups in a wave.
  float* floats = states_.floats(units * (1 + wave) * call.state_floats);
  const auto state_of = [&](int64_t unit) {
    return state_at(
        floats + unit * call.state_floats, units_[static_cast<size_t>(unit)].padded_queries()
    );
  };
  const auto group_state = [&](int64_t unit, int64_t index) {
    return state_at(
        floats + (units + unit * wave + index) * call.state_floats,
        units_[static_cast<size_t>(unit)].padded_queries()
    );
  };
  for (int64_t unit = 0; unit < units; ++unit) {
    std::fill_n(state_of(unit).sum, units_[static_cast<size_t>(unit)].padded_queries(), 0.0F);
  }
  for (int64_t first = 0; first < most_groups; first += wave) {
    for (Unit& unit : units_) {
      unit.missing_groups = std::min(wave, unit.last_group - unit.first_group - first);
    }
    share(call, units * wave, [&](int64_t task, int thread) {
      const int64_t index = task / wave;
      Unit& unit = units_[static_cast<size_t>(index)];
      const int64_t group = unit.first_group + first + task % wave;
      if (group >= unit.last_group) {
        return;
      }
      attend_group(call, unit, group, thread, group_state(index, task % wave));
      // Whoever computes a unit's last group of the wave merges them all.
      const std::atomic_ref<int64_t> missing(unit.missing_groups);
      if (missing.fetch_sub(1, std::memory_order_acq_rel) > 1) {
        return;
      }
      const int64_t groups = std::min(wave, unit.last_group - unit.first_group - first);
      for (int64_t g = 0; g < groups; ++g) {
        kernels_.attend_merge(
            state_of(index), group_state(index, g), unit.padded_queries(), call.width
        );
      }
      if (unit.first_group + first + groups == unit.last_group) {
        finish(call, unit, state_of(index));
      }
    });
  }
}

void CpuAttend::attend_group(
    const Call& call, const Unit& unit, int64_t group, int thread, AttendState out
) {
  ThreadScratch& scratch = threads_[static_cast<size_t>(thread)];
  const KvView& kv = unit.segment->kv;
  const int64_t count = unit.padded_queries();
  const KeyRange whole{group * kAttendGroup, (group + 1) * kAttendGroup};
  scratch.ranges.resize(static_cast<size_t>(count));
  for (int64_t query = 0; query < count; ++query) {
    const int64_t row = unit.first_row + std::min(query / unit.heads, unit.rows - 1);
    const KeyRange range = unit.segment->ranges[static_cast<size_t>(row)];
    scratch.ranges[static_cast<size_t>(query)] = {
        std::max(range.begin, whole.begin), std::min(range.end, whole.end)};
  }
  const int64_t head_bytes = kv.capacity * kv_row_bytes(kv.type, kv.head_dim);
  AttendTile tile;
  tile.queries = packed_queries(call, unit, scratch);
  tile.count = count;
  tile.ranges = scratch.ranges.data();
  tile.keys = kv.keys + unit.kv_head * head_bytes;
  tile.values = kv.values + unit.kv_head * head_bytes;
  tile.type = kv.type;
  tile.capacity = kv.capacity;
  tile.head_dim = kv.head_dim;
  tile.group_begin = whole.begin;
  tile.scores = scratch.scores.floats(count * kAttendScoreStride);
  tile.staged = scratch.staged.floats(attend_staged_floats(kv.head_dim));
  tile.out = out;
  tile.keys_asked = scratch.asked_unit == &unit && scratch.asked_group == group;
  // With more queries arithmetic hides the way from memory better than requests in bursts do.
  if (count == kAttendQueryMultiple && group + 1 < unit.last_group) {
    tile.next_keys = keys_of_group(tile, group + 1);
    scratch.asked_unit = &unit;
    scratch.asked_group = group + 1;
  }
  kernels_.attend_group(tile);
}

void CpuAttend::finish(const Call& call, const Unit& unit, const AttendState& state) {
  const KvView& kv = unit.segment->kv;
  for (int64_t query = 0; query < unit.queries(); ++query) {
    const int64_t row = unit.segment->first_row + unit.first_row + query / unit.heads;
    const int64_t head = unit.kv_head * unit.heads + query % unit.heads;
    kernels_.attend_finish(
        state.weighted + query * call.width,
        state.sum[query],
        kv.type,
        kv.head_dim,
        call.out.row(row) + head * kv.head_dim
    );
  }
}

void CpuAttend::share(
    const Call& call, int64_t tasks, FunctionRef<void(int64_t task, int thread)> body
) {
  if (tasks == 1 || call.inline_only) {
    for (int64_t task = 0; task < tasks; ++task) {
      body(task, 0);
    }
    return;
  }
  // Neighbouring tasks are neighbouring keys.
  work_.begin(tasks);
  pool_.run_available([&](int thread) {
    work_.work(thread, [&](int64_t task) { body(task, thread); });
  });
}

}  // namespace octet::cpu
