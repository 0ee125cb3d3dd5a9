// Byte pair merging of one run of symbols: always the pair of lowest rank, the leftmost of equal
// ones, until no pair merges. Two ways to the same result: a plain scan for short runs, and for
// long ones a queue that takes the pairs of one rank in text order, so that megabytes of one
// character cost no more than linear time. Invariant: no recursion, memory linear in the run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/pair_table.h"

namespace octet {

/// Candidate merges, lowest rank first, leftmost first within a rank. Most candidates of a rank
/// arrive in text order and wait in a list; the others wait in a heap.
class MergeQueue {
 public:
  struct Candidate {
    MergeRank rank = kNoRank;  // kNoRank: the queue is empty
    int32_t position = 0;
  };

  explicit MergeQueue(size_t ranks) : lists_(ranks) {}
  void push(MergeRank rank, int32_t position);
  Candidate pop();

 private:
  static constexpr int32_t kEnd = -1;
  struct Node {
    int32_t position = 0;
    int32_t next = kEnd;
  };
  struct List {
    int32_t head = kEnd;
    int32_t tail = kEnd;
  };

  int32_t new_node(int32_t position);
  Candidate pop_from_list(MergeRank rank);

  std::vector<List> lists_;       // by rank; positions ascend in each
  std::vector<MergeRank> ranks_;  // min-heap of the ranks whose list is not empty
  std::vector<uint64_t> late_;    // min-heap of rank << 32 | position: what came out of order
  std::vector<Node> nodes_;
  int32_t free_ = kEnd;  // nodes for reuse
};

class BpeMerger {
 public:
  explicit BpeMerger(const PairTable& pairs) : pairs_(pairs) {}

  /// Appends the merged symbols to `out`. At most 2^31 - 1 symbols.
  void merge(std::span<const TokenId> symbols, std::vector<TokenId>& out);

 private:
  void merge_short(std::span<const TokenId> symbols, std::vector<TokenId>& out) const;
  void merge_long(std::span<const TokenId> symbols, std::vector<TokenId>& out);
  void offer(int32_t position, MergeQueue& queue);
  void apply(MergeQueue::Candidate candidate, MergeQueue& queue);

  struct Symbol {
    TokenId id = kNoToken;
    int32_t previous = 0;
    int32_t next = 0;
    MergeRank pair_rank = kNoRank;  // of this symbol and the next; kNoRank once merged away
  };

  const PairTable& pairs_;
  std::vector<Symbol> symbols_;      // a linked list in text order, of merge_long
  std::optional<MergeQueue> queue_;  // made for the first long run: it is large
};

}  // namespace octet
