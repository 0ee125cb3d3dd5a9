// Keys and values of one sequence for every layer that owns them, used by targets and drafters
// alike. A layer with a window is a ring that holds the window plus the rows of the largest
// forward, so that taking positions back is a cursor move; a layer without one holds every
// position, in memory that costs nothing until it is written. It does not know what is stored or
// who may see it. Invariant: positions [first(), length()) are present in every layer that can
// still see them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/page_memory.h"
#include "octet/kernels/ops.h"

namespace octet {

struct KvLayer {
  int kv_heads = 0;
  int head_dim = 0;
  int64_t window = 0;  // keys a query can see, itself included; 0: all. One value for all rings.
};

class KvCache {
 public:
  /// `positions`: most positions ever stored. `spare_rows`: rows that may be written beyond
  /// length() before the cursor decides which of them stay; the rings hold the window and that many
  /// rows, rounded up to whole chunks.
  KvCache(std::span<const KvLayer> layers, int64_t positions, int64_t spare_rows, KvType type);

  /// What a cache of these sizes costs when every position is written.
  static int64_t bytes_for(
      std::span<const KvLayer> layers, int64_t positions, int64_t spare_rows, KvType type
  );

  int64_t positions() const { return positions_; }
  int64_t length() const { return length_; }
  /// The oldest position that `layer` still holds; length() when it holds none.
  int64_t first(size_t layer) const;
  /// The oldest position that every layer still holds.
  int64_t first() const;
  const KvView& view(size_t layer) const { return views_[layer]; }

  /// Says that the rows behind length() up to `end` are being written (they take ring slots),
  /// without keeping them.
  void reserve(int64_t end);
  /// Keeps the rows [length(), length() + rows), which were written.
  void extend(int64_t rows);

  /// Whether the next row after truncate(length) would find its whole window.
  bool can_truncate(int64_t length) const;
  /// Keeps [0, length), or what is left of it: see first().
  void truncate(int64_t length);
  /// Forgets everything and continues at `position`.
  void restart(int64_t position);

  /// The greatest end of written rows with which truncate(length) would still find its whole
  /// window; the largest integer without rings.
  int64_t keeps_until(int64_t length) const;
  /// Becomes a copy of the first `length` positions of `from`, which must have the same layers,
  /// capacity and type, and can_truncate(length).
  void copy_prefix(const KvCache& from, int64_t length);

  /// Bytes of memory that were written since the last restart from 0.
  int64_t bytes() const;
  /// What bytes() would be with so many positions.
  int64_t bytes_at(int64_t positions) const;

  /// For measurements: positions [0, length) hold small pseudo-random values.
  void fill_for_measurement(int64_t length);

  /// For tests: every slot that no row at length() or later may read becomes NaN.
  void poison();

 private:
  int64_t ring_first() const;

  std::vector<KvLayer> layers_;
  std::vector<KvView> views_;
  PageMemory memory_;
  int64_t positions_;
  int64_t window_ = 0;  // of the rings; 0: there are none
  int64_t ring_capacity_ = 0;
  int64_t length_ = 0;
  int64_t written_end_ =
      0;  // highest position written since the last cut: a ring holds what lies before it
  int64_t touched_end_ = 0;  // highest position ever written: what the memory costs
  int64_t first_ = 0;        // nothing before was ever written
  int64_t ring_first_ = 0;   // nothing before had survived in rings at the last cut
};

}  // namespace octet
