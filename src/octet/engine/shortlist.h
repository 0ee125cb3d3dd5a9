// Chooses the tokens that drafts are looked for among: those that a text, or what the target itself
// wrote, uses most. A token that is left out is never drafted, the target still writes it. Counts
// and ranks; what becomes of the list is models/dflash/draft_head.h. Invariant: a list ascends and
// has no token twice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"

namespace octet {

class TokenCounts {
 public:
  explicit TokenCounts(int64_t vocabulary) : counts_(static_cast<size_t>(vocabulary)) {}

  /// Ids beyond the vocabulary are left out.
  void add(std::span<const TokenId> tokens);

  int64_t total() const { return total_; }
  int64_t distinct() const;
  /// Share of the counted tokens that `shortlist` holds; 1 when nothing was counted.
  double covered(std::span<const TokenId> shortlist) const;
  /// The `size` most frequent tokens, those of `always` before all others; equally frequent ones
  /// (unseen ones too) in order of their ids, because vocabularies list frequent pieces first.
  std::vector<TokenId> shortlist(int64_t size, std::span<const TokenId> always) const;

 private:
  std::vector<int64_t> counts_;  // by token
  int64_t total_ = 0;
};

}  // namespace octet
