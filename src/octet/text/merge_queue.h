// Candidates for merging, lowest rank first, leftmost first within a rank. In long runs most
// candidates of a rank arrive in text order: those wait in a list of their rank, taking and adding
// them is cheap; only what comes out of order pays for a heap.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "octet/text/pair_table.h"

namespace octet {

struct MergeCandidate {
  MergeRank rank = kNoRank;  // kNoRank: none
  int32_t position = 0;
};

class MergeQueue {
 public:
  /// A heap alone: best for few candidates.
  MergeQueue() = default;
  /// With a list for each of `ranks` ranks.
  explicit MergeQueue(size_t ranks) : lists_(ranks) {}

  void push(MergeCandidate candidate);
  /// Removes and returns the first candidate; of rank kNoRank when there is none.
  MergeCandidate pop();

 private:
  struct Block {
    static constexpr uint32_t kCapacity = 12;  // a block fills a cache line
    Block* next = nullptr;
    uint32_t begin = 0;
    uint32_t end = 0;
    std::array<int32_t, kCapacity> positions{};
  };
  struct List {
    Block* head = nullptr;
    Block* tail = nullptr;
  };

  static uint64_t key_of(MergeCandidate candidate) {
    return static_cast<uint64_t>(candidate.rank) << 32 | static_cast<uint32_t>(candidate.position);
  }
  bool append(MergeCandidate candidate);
  MergeCandidate first_listed() const;
  MergeCandidate pop_listed();
  Block* new_block();

  std::vector<List> lists_;       // by rank; positions ascend in each
  std::vector<MergeRank> ranks_;  // min-heap of the ranks whose list is not empty
  std::vector<uint64_t> heap_;    // min-heap of keys
  std::deque<Block> blocks_;      // owns all blocks
  Block* free_ = nullptr;         // those to be used again
};

}  // namespace octet
