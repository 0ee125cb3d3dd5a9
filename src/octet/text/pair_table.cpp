#include "octet/text/pair_table.h"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

TokenId find_piece(const Vocabulary& vocabulary, std::string_view piece, size_t rank) {
  const TokenId id = vocabulary.find(piece);
  if (id == kNoToken) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("merge {} needs the piece \"{}\", which is not in the vocabulary", rank, piece)
    );
  }
  return id;
}

}  // namespace

PairTable::PairTable(const Vocabulary& vocabulary, std::span<const MergeText> merges) {
  if (static_cast<int64_t>(merges.size()) > kMaxMerges) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("the tokenizer has {} merges, expected at most {}", merges.size(), kMaxMerges)
    );
  }
  const size_t slots = std::bit_ceil(std::max<size_t>(merges.size(), 1) * 2);
  slots_.assign(slots, kFree);
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  results_.assign(merges.size(), kNoToken);

  const auto is_text = [&](TokenId id) {
    return !vocabulary.is_byte(id) && !vocabulary.is_control(id);
  };
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left_text, right_text] = merges[rank];
    const TokenId left = find_piece(vocabulary, left_text, rank);
    const TokenId right = find_piece(vocabulary, right_text, rank);
    const TokenId result =
        find_piece(vocabulary, joined.assign(left_text).append(right_text), rank);
    // Byte tokens take no part in merges, and text must never turn into a control token.
    if (is_text(left) && is_text(right) && is_text(result)) {
      results_[rank] = result;
      insert(key_of(left, right), static_cast<MergeRank>(rank));
    }
  }
}

void PairTable::insert(uint64_t key, MergeRank rank) {
  size_t slot = slot_of(key);
  for (; slots_[slot] != kFree; slot = (slot + 1) & mask_) {
    if (slots_[slot] >> kRankBits == key) {
      return;
    }
  }
  slots_[slot] = key << kRankBits | rank;
}

}  // namespace octet
