// The DFlash drafter as a model: context features in, draft logits out. It knows nothing of
// acceptance or sampling.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/models/target_model.h"
#include "octet/tensor/rows.h"

namespace octet {

/// One sequence's draft context: keys and values of committed positions, the last window of them.
/// Only accepted positions ever enter; the block of a draft is scratch that the next one
/// overwrites.
class DraftCache {
 public:
  virtual ~DraftCache() = default;
  virtual int64_t length() const = 0;  // positions [valid_from(), length()) are present
  virtual int64_t valid_from() const = 0;
  virtual int64_t bytes() const = 0;
  /// Continues at `position` without features for what lies between: rows before it are masked.
  /// Used when the last window of a long prompt is all that is injected, and after a cut.
  virtual void restart(int64_t position) = 0;
  virtual void truncate(int64_t length) = 0;
  /// Becomes a copy of `from`, a cache of the same model and capacity, cut to `length`.
  virtual void copy_prefix(const DraftCache& from, int64_t length) = 0;
  /// How many positions may follow `length` before truncate(length) would miss a part of its
  /// window.
  virtual int64_t spare_positions() const = 0;
};

struct DraftRequest {
  DraftCache* cache = nullptr;
  TokenId anchor = 0;  // the token at position cache->length()
};

struct DraftShape {
  int block = 8;          // rows of a block: the anchor and block - 1 masks
  int64_t window = 0;     // context positions a row can see; 0: all
  std::vector<int> taps;  // zero-based target layers
  TokenId mask_token = 0;
  int64_t vocabulary = 0;       // columns of the draft logits
  std::vector<TokenId> tokens;  // of the columns, ascending; empty: column i is token i
  std::optional<float> final_softcap = std::nullopt;  // its own, where the file states one; 0: none
};

class DraftModel {
 public:
  virtual ~DraftModel() = default;
  virtual const DraftShape& shape() const = 0;
  virtual ModelMemory memory() const = 0;
  /// A whole block with its head rows, behind `context` positions that are present; a head borrowed
  /// from the target counts.
  virtual PassWork block_work(int64_t /*context*/) const { return {}; }
  /// So many positions injected at once.
  virtual PassWork inject_work(int64_t /*rows*/) const { return {}; }
  virtual std::unique_ptr<DraftCache> new_cache(int64_t positions) const = 0;

  /// Fuses features [n, taps * hidden] and appends them at positions cache.length() .. + n.
  virtual void inject(DraftCache& cache, ConstRows features) = 0;

  /// One block a request; out has (block - 1) rows a request: row j is the draft for position
  /// length + 1 + j. No soft cap.
  virtual void draft(std::span<const DraftRequest> requests, Rows logits) = 0;
};

}  // namespace octet
