#include "octet/text/bpe_merger.h"

#include <algorithm>
#include <array>

namespace octet {
namespace {

/// Up to here scanning all pairs for every merge beats keeping a queue.
constexpr size_t kMaxShortRun = 48;

/// From here on the lists of an ordered queue are worth their memory.
constexpr size_t kMinOrderedRun = 16'384;

static_assert(kMaxPieceBytes <= 0xFFFF, "spans_ holds lengths of pieces");

}  // namespace

void BpeMerger::merge(std::span<TokenId> symbols, std::vector<TokenId>& out) {
  if (symbols.size() <= kMaxShortRun) {
    merge_short(symbols, out);
  } else {
    merge_long(symbols, out);
  }
}

void BpeMerger::merge_short(std::span<TokenId> symbols, std::vector<TokenId>& out) const {
  std::array<TokenId, kMaxShortRun> ids{};
  std::array<MergeRank, kMaxShortRun> ranks{};  // ranks[i]: of the pair ids[i], ids[i + 1]
  size_t count = symbols.size();
  std::copy(symbols.begin(), symbols.end(), ids.begin());
  for (size_t i = 0; i + 1 < count; ++i) {
    ranks[i] = pairs_.rank(ids[i], ids[i + 1]);
  }
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      best = ranks[i] < ranks[best] ? i : best;
    }
    if (ranks[best] == kNoRank) {
      break;
    }
    ids[best] = pairs_.result(ranks[best]);
    for (size_t i = best + 1; i + 1 < count; ++i) {
      ids[i] = ids[i + 1];
      ranks[i] = ranks[i + 1];
    }
    --count;
    if (best + 1 < count) {
      ranks[best] = pairs_.rank(ids[best], ids[best + 1]);
    }
    if (best > 0) {
      ranks[best - 1] = pairs_.rank(ids[best - 1], ids[best]);
    }
  }
  out.insert(out.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
}

void BpeMerger::merge_long(std::span<TokenId> symbols, std::vector<TokenId>& out) {
  const bool ordered = symbols.size() >= kMinOrderedRun;
  if (ordered && !ordered_queue_) {
    ordered_queue_.emplace(pairs_.results().size());
  }
  MergeQueue& queue = ordered ? *ordered_queue_ : queue_;
  symbols_ = symbols;
  ranks_.resize(symbols.size());
  spans_.assign(symbols.size(), 1);
  for (size_t i = 0; i < symbols.size(); ++i) {
    offer(i, queue);
  }
  for (MergeCandidate best = queue.pop(); best.rank != kNoRank; best = queue.pop()) {
    // A candidate is stale when one of its symbols was merged since it was offered.
    if (ranks_[static_cast<size_t>(best.position)] == best.rank) {
      apply(best, queue);
    }
  }
  for (size_t i = 0; i < symbols.size(); i += spans_[i]) {
    out.push_back(symbols[i]);
  }
}

/// Makes the pair that starts at `position` a candidate if it merges.
void BpeMerger::offer(size_t position, MergeQueue& queue) {
  const size_t next = position + spans_[position];
  const MergeRank rank =
      next < symbols_.size() ? pairs_.rank(symbols_[position], symbols_[next]) : kNoRank;
  ranks_[position] = rank;
  if (rank != kNoRank) {
    queue.push({rank, static_cast<int32_t>(position)});
  }
}

void BpeMerger::apply(const MergeCandidate& candidate, MergeQueue& queue) {
  const auto left = static_cast<size_t>(candidate.position);
  const size_t right = left + spans_[left];
  const auto span = static_cast<uint16_t>(spans_[left] + spans_[right]);
  symbols_[left] = pairs_.result(candidate.rank);
  ranks_[right] = kNoRank;
  spans_[left] = span;
  spans_[left + span - 1] = span;
  offer(left, queue);
  if (left > 0) {
    offer(left - spans_[left - 1], queue);
  }
}

}  // namespace octet
