#include "octet/models/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "octet/base/check.h"

namespace octet {
namespace {

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t slot_capacity(const KvLayer& layer, int64_t positions, int64_t spare_rows) {
  const int64_t all = round_up(positions, kAttentionChunk);
  if (layer.window == 0) {
    return all;
  }
  return std::min(all, round_up(layer.window + spare_rows, kAttentionChunk));
}

/// Bytes of one position in one of the two arrays.
int64_t position_bytes(const KvLayer& layer, KvType type) {
  return layer.kv_heads * kv_row_bytes(type, layer.head_dim);
}

PageAdvice page_advice(int64_t bytes) {
  constexpr int64_t kHugeFrom = int64_t{16} << 20;  // below, whole huge pages would be a waste
  return bytes >= kHugeFrom ? PageAdvice::kHuge : PageAdvice::kSmall;
}

/// A few rows of small pseudo-random numbers.
std::vector<std::byte> measurement_rows(const KvView& view) {
  constexpr int64_t kRows = 16;
  const int64_t row_bytes = kv_row_bytes(view.type, view.head_dim);
  std::vector<std::byte> rows(static_cast<size_t>(kRows * row_bytes));
  // As BF16 and as F32, exponents just below 1; as codes of Q8, anything.
  uint32_t state = 1;
  for (size_t i = 0; i < rows.size(); i += sizeof(uint16_t)) {
    state = state * 1664525U + 1013904223U;
    const auto value = static_cast<uint16_t>(0x3D00U | (state >> 16 & 0x80FFU));
    std::memcpy(rows.data() + i, &value, sizeof(value));
  }
  if (view.type == KvType::kQ8) {
    constexpr uint16_t kScale = 0x1400;  // 2^-10
    const int64_t width = kv_row_width(view.head_dim);
    for (int64_t row = 0; row < kRows; ++row) {
      auto* scales = reinterpret_cast<uint16_t*>(rows.data() + row * row_bytes + width);
      std::fill_n(scales, width / 32, kScale);
    }
  }
  return rows;
}

}  // namespace

int64_t KvCache::bytes_for(
    std::span<const KvLayer> layers, int64_t positions, int64_t spare_rows, KvType type
) {
  int64_t total = 0;
  for (const KvLayer& layer : layers) {
    total += 2 * slot_capacity(layer, positions, spare_rows) * position_bytes(layer, type);
  }
  return total;
}

KvCache::KvCache(
    std::span<const KvLayer> layers, int64_t positions, int64_t spare_rows, KvType type
)
    : layers_(layers.begin(), layers.end()),
      memory_(
          bytes_for(layers, positions, spare_rows, type),
          page_advice(bytes_for(layers, positions, spare_rows, type)),
          "keys and values; use a shorter context"
      ),
      positions_(positions) {
  OCTET_CHECK(positions > 0 && spare_rows > 0);
  std::byte* next = memory_.data();
  for (const KvLayer& layer : layers_) {
    const int64_t capacity = slot_capacity(layer, positions, spare_rows);
    const int64_t array_bytes = capacity * position_bytes(layer, type);
    views_.push_back({next, next + array_bytes, type, capacity, layer.kv_heads, layer.head_dim});
    next += 2 * array_bytes;
    if (layer.window > 0) {
      OCTET_CHECK(window_ == 0 || window_ == layer.window);
      window_ = layer.window;
      ring_capacity_ = capacity;
    }
  }
}

int64_t KvCache::first(size_t layer) const {
  return layers_[layer].window == 0 ? first_ : ring_first();
}

int64_t KvCache::first() const {
  return std::max(first_, ring_first());
}

int64_t KvCache::ring_first() const {
  if (window_ == 0) {
    return 0;
  }
  return std::min(length_, std::max(ring_first_, written_end_ - ring_capacity_));
}

void KvCache::reserve(int64_t end) {
  OCTET_CHECK(end >= length_);
  written_end_ = std::max(written_end_, end);
  touched_end_ = std::max(touched_end_, written_end_);
}

void KvCache::extend(int64_t rows) {
  OCTET_CHECK(rows >= 0 && length_ + rows <= positions_);
  reserve(length_ + rows);
  length_ += rows;
}

bool KvCache::can_truncate(int64_t length) const {
  if (length < 0 || length > length_) {
    return false;
  }
  const int64_t window_begin = std::max<int64_t>(0, length + 1 - window_);
  return length == 0 || (first_ == 0 && ring_first() <= window_begin);
}

void KvCache::truncate(int64_t length) {
  OCTET_CHECK(length >= 0 && length <= length_);
  ring_first_ = std::min(ring_first(), length);
  first_ = std::min(first_, length);
  length_ = length;
  written_end_ = length;
}

void KvCache::restart(int64_t position) {
  OCTET_CHECK(position >= 0 && position <= positions_);
  length_ = position;
  written_end_ = position;
  first_ = position;
  ring_first_ = position;
}

int64_t KvCache::keeps_until(int64_t length) const {
  if (window_ == 0) {
    return std::numeric_limits<int64_t>::max();
  }
  return std::max<int64_t>(0, length + 1 - window_) + ring_capacity_;
}

void KvCache::copy_prefix(const KvCache& from, int64_t length) {
  OCTET_CHECK(length >= 0 && length <= from.length_ && views_.size() == from.views_.size());
  for (size_t i = 0; i < views_.size(); ++i) {
    const KvView& to = views_[i];
    const KvView& source = from.views_[i];
    OCTET_CHECK(to.capacity == source.capacity && to.type == source.type);
    // A ring is taken as it is: slots are positions modulo the capacity in both.
    const bool ring = layers_[i].window > 0;
    const int64_t slots = std::min(ring ? from.written_end_ : length, to.capacity);
    const int64_t row_bytes = kv_row_bytes(to.type, to.head_dim);
    for (int64_t head = 0; head < to.kv_heads; ++head) {
      const int64_t offset = head * to.capacity * row_bytes;
      std::memcpy(to.keys + offset, source.keys + offset, static_cast<size_t>(slots * row_bytes));
      std::memcpy(
          to.values + offset, source.values + offset, static_cast<size_t>(slots * row_bytes)
      );
    }
  }
  length_ = from.length_;
  written_end_ = from.written_end_;
  touched_end_ = std::max(touched_end_, from.written_end_);
  first_ = from.first_;
  ring_first_ = from.ring_first_;
  truncate(length);
}

int64_t KvCache::bytes() const {
  return bytes_at(touched_end_);
}

int64_t KvCache::bytes_at(int64_t positions) const {
  int64_t total = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const int64_t slots = std::min(positions, views_[i].capacity);
    total += 2 * slots * position_bytes(layers_[i], views_[i].type);
  }
  return total;
}

void KvCache::fill_for_measurement(int64_t length) {
  OCTET_CHECK(length >= 0 && length <= positions_);
  for (const KvView& view : views_) {
    const int64_t row_bytes = kv_row_bytes(view.type, view.head_dim);
    const std::vector<std::byte> rows = measurement_rows(view);
    const auto pattern_bytes = static_cast<int64_t>(rows.size());
    const int64_t filled = std::min(length, view.capacity) * row_bytes;
    for (int64_t head = 0; head < view.kv_heads; ++head) {
      for (std::byte* array : {view.keys, view.values}) {
        std::byte* to = array + head * view.capacity * row_bytes;
        for (int64_t done = 0; done < filled; done += pattern_bytes) {
          std::memcpy(
              to + done, rows.data(), static_cast<size_t>(std::min(pattern_bytes, filled - done))
          );
        }
      }
    }
  }
  restart(0);
  reserve(length);
  length_ = length;
}

void KvCache::poison() {
  // 0x7FC0 is NaN as BF16 and as a half, and twice in a row it is NaN as F32.
  constexpr uint16_t kNan = 0x7FC0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const KvView& view = views_[i];
    const int64_t window = layers_[i].window;
    const int64_t begin = window == 0 ? first(i) : std::max(first(i), length_ + 1 - window);
    const int64_t kept = length_ - begin;
    const int64_t row_bytes = kv_row_bytes(view.type, view.head_dim);
    const std::vector<uint16_t> pattern(static_cast<size_t>(row_bytes) / sizeof(kNan), kNan);
    for (int64_t slot = 0; slot < view.capacity; ++slot) {
      const int64_t behind = ((slot - begin) % view.capacity + view.capacity) % view.capacity;
      if (behind < kept) {
        continue;
      }
      for (int64_t head = 0; head < view.kv_heads; ++head) {
        const int64_t offset = (head * view.capacity + slot) * row_bytes;
        std::memcpy(view.keys + offset, pattern.data(), static_cast<size_t>(row_bytes));
        std::memcpy(view.values + offset, pattern.data(), static_cast<size_t>(row_bytes));
      }
    }
  }
  ring_first_ = std::min(length_, std::max(ring_first(), length_ + 1 - window_));
}

}  // namespace octet
