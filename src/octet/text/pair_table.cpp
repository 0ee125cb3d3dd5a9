#include "octet/text/pair_table.h"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

/// Merges resolved at a time.
constexpr size_t kBlock = 64;

/// Pieces of up to kBlock merges: left, right and result of each.
class MergePieces {
 public:
  void resolve(const Vocabulary& vocabulary, std::span<const MergeText> merges) {
    texts_.clear();
    joined_.clear();
    for (const MergeText& merge : merges) {
      joined_.append(merge.left).append(merge.right);
    }
    size_t begin = 0;
    for (const MergeText& merge : merges) {
      const size_t bytes = merge.left.size() + merge.right.size();
      texts_.insert(
          texts_.end(), {merge.left, merge.right, std::string_view(joined_).substr(begin, bytes)}
      );
      begin += bytes;
    }
    ids_.resize(texts_.size());
    vocabulary.find_all(texts_, ids_);
  }

  std::span<const TokenId, 3> ids(size_t merge) const {
    return std::span<const TokenId, 3>(&ids_[merge * 3], 3);
  }
  std::span<const std::string_view, 3> texts(size_t merge) const {
    return std::span<const std::string_view, 3>(&texts_[merge * 3], 3);
  }

 private:
  std::string joined_;
  std::vector<std::string_view> texts_;
  std::vector<TokenId> ids_;
};

[[noreturn]] void fail_unknown_piece(size_t rank, std::string_view piece) {
  throw Error(
      ErrorKind::kMalformed,
      fmt::format("merge {} needs the piece \"{}\", which is not in the vocabulary", rank, piece)
  );
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

  MergePieces pieces;
  for (size_t begin = 0; begin < merges.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, merges.size() - begin);
    pieces.resolve(vocabulary, merges.subspan(begin, count));
    for (size_t i = 0; i < count; ++i) {
      const auto ids = pieces.ids(i);
      if (const auto missing = std::find(ids.begin(), ids.end(), kNoToken); missing != ids.end()) {
        fail_unknown_piece(begin + i, pieces.texts(i)[static_cast<size_t>(missing - ids.begin())]);
      }
      // Byte tokens take no part in merges, and text must never turn into a control token.
      const bool all_text =
          std::all_of(ids.begin(), ids.end(), [&](TokenId id) { return vocabulary.is_text(id); });
      if (all_text) {
        results_[begin + i] = ids[2];
        insert(key_of(ids[0], ids[1]), static_cast<MergeRank>(begin + i));
      }
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
