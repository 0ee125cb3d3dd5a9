// Byte pair merging of one run of symbols: always the pair of lowest rank, the leftmost of equal
// ones, until no pair merges. Short runs are scanned again for every merge, long ones keep their
// candidates in a queue: same result. Invariant: no recursion, memory linear in the run, and time
// linear too where it matters: megabytes of one repeated character.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/merge_queue.h"
#include "octet/text/pair_table.h"

namespace octet {

/// Which way a run takes, by its length in symbols. Results are the same for any limits; tests
/// force each way.
struct MergeLimits {
  /// Up to here scanning all pairs for every merge beats keeping a queue.
  size_t max_scanned = 48;
  /// From here on the lists of an ordered queue are worth their memory.
  size_t min_ordered = 16'384;
};

class BpeMerger {
 public:
  explicit BpeMerger(const PairTable& pairs, MergeLimits limits = {})
      : pairs_(pairs), limits_(limits) {}

  /// Appends the merged symbols to `out`; `symbols` is used up. At most 2^31 - 1 symbols.
  void merge(std::span<TokenId> symbols, std::vector<TokenId>& out);

 private:
  void merge_by_scan(std::span<TokenId> symbols, std::vector<TokenId>& out);
  void merge_by_queue(std::span<TokenId> symbols, std::vector<TokenId>& out);
  void offer(size_t position, MergeQueue& queue);
  void apply(const MergeCandidate& candidate, MergeQueue& queue);

  const PairTable& pairs_;
  MergeLimits limits_;

  // A merged symbol keeps the place of its first character; the places of the others are dead.
  std::span<TokenId> symbols_;
  // Of the pair that starts at each place; kNoRank when it does not merge or the place is dead.
  std::vector<MergeRank> ranks_;
  std::vector<uint16_t> spans_;  // characters of a symbol, at its first and at its last place
  MergeQueue queue_;
  std::optional<MergeQueue> ordered_queue_;  // made for the first very long run: it is large
};

}  // namespace octet
