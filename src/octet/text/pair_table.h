// The merges of a BPE tokenizer: a pair of neighbouring pieces to the rank and the result of their
// merge. Invariant: results are ordinary pieces only, so no merge can produce a byte token or a
// control token. 8 bytes a slot, because lookups miss the cache and half a million merges are
// usual.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/tokenizer_source.h"
#include "octet/text/vocabulary.h"

namespace octet {

using MergeRank = uint32_t;
inline constexpr MergeRank kNoRank = 0xFFFFFFFF;

inline constexpr int64_t kMaxMerges = (int64_t{1} << 22) - 1;

class PairTable {
 public:
  /// `merges` from rank 0 on. Of merges of the same pair the first counts. Throws Error(kMalformed)
  /// naming the rank when a half or the result is not in the vocabulary.
  PairTable(const Vocabulary& vocabulary, std::span<const MergeText> merges);

  /// kNoRank when the pair does not merge.
  MergeRank rank(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot] >> kRankBits == key) {
        return static_cast<MergeRank>(slots_[slot] & kRankMask);
      }
      if (slots_[slot] == kFree) {
        return kNoRank;
      }
    }
  }
  TokenId result(MergeRank rank) const { return results_[rank]; }

  /// Results by rank; kNoToken for merges that never apply.
  std::span<const TokenId> results() const { return results_; }

 private:
  static constexpr int kIdBits = 21;
  static constexpr int kRankBits = 22;
  static constexpr uint64_t kRankMask = (uint64_t{1} << kRankBits) - 1;
  static constexpr uint64_t kFree = ~uint64_t{0};  // its rank would be above kMaxMerges
  static_assert(
      kMaxPieces <= int64_t{1} << kIdBits && kMaxMerges <= static_cast<int64_t>(kRankMask)
  );

  static uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(left) << kIdBits | static_cast<uint64_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15) >> shift_; }
  void insert(uint64_t key, MergeRank rank);

  std::vector<uint64_t> slots_;  // left id, right id, rank, from the top
  size_t mask_ = 0;
  int shift_ = 0;
  std::vector<TokenId> results_;
};

}  // namespace octet
