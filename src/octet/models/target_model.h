// What a target model offers to the verify cycle: a forward pass over rows of any sequences, with
// logits and tap features for the rows that somebody reads. Hides layers, cache layout and sharing.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/kernels/ops.h"
#include "octet/tensor/rows.h"

namespace octet {

/// One sequence's keys and values. Entries at positions >= length() are stale and never read;
/// truncation is a cursor move. Rings hold the window plus the largest number of rows of one
/// forward.
class SequenceCache {
 public:
  virtual ~SequenceCache() = default;
  virtual int64_t length() const = 0;    // positions stored
  virtual int64_t capacity() const = 0;  // most positions this cache can hold
  virtual int64_t bytes() const = 0;
  /// Keeps positions [0, length). `length` must be within max_rows() of the present length, or 0.
  virtual void truncate(int64_t length) = 0;
  /// Whether the keys that a continuation at `length` needs are still there (a ring forgets):
  /// always for 0 and for the last max_rows() positions, for earlier ones it depends on what was
  /// written since. Ask before reusing a prefix.
  virtual bool can_truncate(int64_t length) const { return length <= this->length(); }
  /// The greatest end of processed rows up to which can_truncate(length) stays true.
  virtual int64_t keeps_until(int64_t /*length*/) const {
    return std::numeric_limits<int64_t>::max();
  }
  /// Becomes a copy of the first `length` positions of `from`, a cache of the same model, capacity
  /// and type with from.can_truncate(length).
  virtual void copy_prefix(const SequenceCache& from, int64_t length) = 0;
  /// What bytes() would be with so many positions.
  virtual int64_t bytes_at(int64_t positions) const = 0;
  /// For measurements: as though `length` positions had been processed, holding small pseudo-random
  /// values.
  virtual void fill_for_measurement(int64_t length);
};

/// Consecutive rows of one sequence in a forward: tokens[i] is at position cache->length() + i.
struct SequenceRows {
  SequenceCache* cache = nullptr;
  std::span<const TokenId> tokens;
  int64_t logits_rows = 0;   // the last so many rows get logits
  int64_t feature_rows = 0;  // the last so many rows get tap features
  bool raw_logits = false;   // without the soft cap, for those who read nothing but their order
};

/// Results of a forward, sequence by sequence, only the rows asked for. Buffers are reused from
/// call to call.
struct ForwardRows {
  std::vector<float> logits_buffer;
  std::vector<float> features_buffer;
  Rows logits;    // [sum logits_rows, vocabulary], soft-capped unless raw
  Rows features;  // [sum feature_rows, taps * hidden], taps concatenated in the order of the list
};

struct TargetShape {
  int64_t vocabulary = 0;
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t context_length = 0;
};

/// Bytes by part, for the memory section of every summary.
struct ModelMemory {
  int64_t weights_bytes = 0;  // read by every token
  int64_t tables_bytes = 0;   // gathered row by row, without those that are read out of a weight
  int64_t scratch_bytes = 0;
};

/// What a pass must read and compute, all its rows together: the floors that `octet bench` holds
/// times against.
struct PassWork {
  int64_t weight_bytes = 0;         // read once, however many rows
  int64_t kv_bytes = 0;             // keys and values, read once a layer
  int64_t int8_multiply_adds = 0;   // in products with rounded activations
  int64_t float_multiply_adds = 0;  // in products with float32 activations, and in attention

  /// A product with `rows` rows; nothing without a weight or rows.
  void add(const Weight* weight, int64_t rows);
  void add(const PassWork& other);
};

/// Rows of one sequence in a pass, as SequenceRows asks for them.
struct PassRows {
  int64_t position = 0;  // of the first: so many are stored before it
  int64_t rows = 0;
  int64_t logits_rows = 0;   // the last so many
  int64_t feature_rows = 0;  // likewise
};

class TargetModel {
 public:
  virtual ~TargetModel() = default;

  virtual const TargetShape& shape() const = 0;
  virtual int64_t max_rows() const = 0;  // most rows of one sequence in one forward
  virtual ModelMemory memory() const = 0;
  /// What a forward of these rows takes at least, with the taps and the type of cache that they
  /// have. Rows of an embedding table are not counted.
  virtual PassWork pass_work(
      const PassRows& /*rows*/, std::span<const int> /*taps*/, KvType /*type*/
  ) const {
    return {};
  }

  virtual std::unique_ptr<SequenceCache> new_cache(int64_t positions, KvType type) const = 0;

  /// Runs all rows, appends their positions to the caches, fills `out`. taps: zero-based layers
  /// whose outputs are wanted.
  virtual void forward(
      std::span<const SequenceRows> batch, std::span<const int> taps, ForwardRows& out
  ) = 0;

  // Shared with drafters that have no embedding or head of their own.
  virtual void embed(
      std::span<const TokenId> ids, float scale, Rows out
  ) = 0;                                                         // rows of the table times scale
  virtual void head(ConstRows hidden, Rows logits) = 0;          // no norm, no soft cap
  virtual const Weight* head_weight() const { return nullptr; }  // what head() multiplies with
  virtual const LogicalTensor* head_tensor() const { return nullptr; }  // the same, as in the file
  virtual float final_softcap() const = 0;                              // 0: none
};

}  // namespace octet
