// Which rows of a batch run through which layers. A row is run only as deep as somebody reads it:
// to the head for logits, to the highest tap for features, else to the last layer that stores keys
// and values, where those are all it contributes. Rows are ordered by falling depth, so that every
// layer works on a prefix of the rows and nothing is moved while layers run. By the law of Ops (a
// row depends on its own inputs only) the order changes no result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/kernels/ops.h"
#include "octet/models/target_model.h"

namespace octet {

/// Consecutive positions of one sequence that leave the stack together.
struct RowGroup {
  size_t sequence = 0;    // index in the batch
  int64_t first_row = 0;  // in the plan's order
  int64_t rows = 0;
  int64_t depth = 0;  // layers [0, depth) are run in full
};

struct DepthRule {
  int64_t layers = 0;          // depth of a row with logits
  int64_t feature_layers = 0;  // depth of a row with features: the highest tap + 1
  int64_t last_kv_layer = 0;   // least depth: what every row must reach
  int64_t window = 0;          // of sliding layers
};

struct RowPlan {
  std::vector<RowGroup> groups;
  std::vector<TokenId> tokens;         // [rows]
  std::vector<int64_t> positions;      // [rows]
  std::vector<KeyRange> full_keys;     // [rows]: positions a row sees in a full layer
  std::vector<KeyRange> sliding_keys;  // [rows]: ... in a sliding layer
  std::vector<int64_t> logits_from;    // row of each logits row, in the batch's order
  std::vector<int64_t> features_from;  // row of each feature row, in the batch's order

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  /// Rows that run layer l to its end: the first so many.
  int64_t rows_through(int64_t l) const;
};

RowPlan plan_rows(std::span<const SequenceRows> batch, const DepthRule& rule);

}  // namespace octet
