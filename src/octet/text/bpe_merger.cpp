#include "octet/text/bpe_merger.h"

#include <algorithm>

namespace octet {

static_assert(kMaxPieceBytes <= 0xFFFF, "spans_ holds lengths of pieces");

void BpeMerger::merge(std::span<TokenId> symbols, std::vector<TokenId>& out) {
  if (symbols.size() <= limits_.max_scanned) {
    merge_by_scan(symbols, out);
  } else {
    merge_by_queue(symbols, out);
  }
}

void BpeMerger::merge_by_scan(std::span<TokenId> symbols, std::vector<TokenId>& out) {
  size_t count = symbols.size();
  ranks_.resize(count);
  for (size_t i = 0; i + 1 < count; ++i) {
    ranks_[i] = pairs_.rank(symbols[i], symbols[i + 1]);
  }
  while (count > 1) {
    const auto lowest =
        std::min_element(ranks_.begin(), ranks_.begin() + static_cast<std::ptrdiff_t>(count - 1));
    if (*lowest == kNoRank) {
      break;
    }
    const auto best = static_cast<size_t>(lowest - ranks_.begin());
    symbols[best] = pairs_.result(*lowest);
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      ranks_[i] = ranks_[i + 1];
    }
    if (best + 1 < count) {
      ranks_[best] = pairs_.rank(symbols[best], symbols[best + 1]);
    }
    if (best > 0) {
      ranks_[best - 1] = pairs_.rank(symbols[best - 1], symbols[best]);
    }
  }
  out.insert(out.end(), symbols.begin(), symbols.begin() + static_cast<std::ptrdiff_t>(count));
}

void BpeMerger::merge_by_queue(std::span<TokenId> symbols, std::vector<TokenId>& out) {
  const bool ordered = symbols.size() >= limits_.min_ordered;
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
