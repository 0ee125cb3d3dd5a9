#include "octet/text/bpe_merger.h"

#include <algorithm>
#include <array>
#include <functional>

namespace octet {
namespace {

/// Up to here scanning all pairs for every merge beats keeping a queue.
constexpr size_t kMaxShortRun = 48;

uint64_t late_key(MergeRank rank, int32_t position) {
  return static_cast<uint64_t>(rank) << 32 | static_cast<uint32_t>(position);
}

}  // namespace

void MergeQueue::push(MergeRank rank, int32_t position) {
  List& list = lists_[rank];
  if (list.head == kEnd) {
    list.head = list.tail = new_node(position);
    ranks_.push_back(rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  } else if (nodes_[static_cast<size_t>(list.tail)].position <= position) {
    const int32_t node = new_node(position);
    nodes_[static_cast<size_t>(list.tail)].next = node;
    list.tail = node;
  } else {
    late_.push_back(late_key(rank, position));
    std::push_heap(late_.begin(), late_.end(), std::greater<>());
  }
}

MergeQueue::Candidate MergeQueue::pop() {
  if (!late_.empty()) {
    const uint64_t late = late_.front();
    const bool late_first =
        ranks_.empty() ||
        late < late_key(
                   ranks_.front(), nodes_[static_cast<size_t>(lists_[ranks_.front()].head)].position
               );
    if (late_first) {
      std::pop_heap(late_.begin(), late_.end(), std::greater<>());
      late_.pop_back();
      return {static_cast<MergeRank>(late >> 32), static_cast<int32_t>(late & 0xFFFFFFFF)};
    }
  }
  return ranks_.empty() ? Candidate{} : pop_from_list(ranks_.front());
}

MergeQueue::Candidate MergeQueue::pop_from_list(MergeRank rank) {
  List& list = lists_[rank];
  const int32_t taken = list.head;
  Node& node = nodes_[static_cast<size_t>(taken)];
  const Candidate candidate = {rank, node.position};
  list.head = node.next;
  node.next = free_;
  free_ = taken;
  if (list.head == kEnd) {
    std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    ranks_.pop_back();
  }
  return candidate;
}

int32_t MergeQueue::new_node(int32_t position) {
  if (free_ == kEnd) {
    nodes_.push_back({position, kEnd});
    return static_cast<int32_t>(nodes_.size()) - 1;
  }
  const int32_t node = free_;
  free_ = nodes_[static_cast<size_t>(node)].next;
  nodes_[static_cast<size_t>(node)] = {position, kEnd};
  return node;
}

void BpeMerger::merge(std::span<const TokenId> symbols, std::vector<TokenId>& out) {
  if (symbols.size() <= kMaxShortRun) {
    merge_short(symbols, out);
  } else {
    merge_long(symbols, out);
  }
}

void BpeMerger::merge_short(std::span<const TokenId> symbols, std::vector<TokenId>& out) const {
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

void BpeMerger::merge_long(std::span<const TokenId> symbols, std::vector<TokenId>& out) {
  if (!queue_) {
    queue_.emplace(pairs_.results().size());
  }
  MergeQueue& queue = *queue_;
  const auto count = static_cast<int32_t>(symbols.size());
  symbols_.resize(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols_[static_cast<size_t>(i)] = {symbols[static_cast<size_t>(i)], i - 1, i + 1, kNoRank};
  }
  for (int32_t i = 0; i < count; ++i) {
    offer(i, queue);
  }
  for (MergeQueue::Candidate best = queue.pop(); best.rank != kNoRank; best = queue.pop()) {
    // A candidate is stale when a neighbour was merged since it was offered.
    if (symbols_[static_cast<size_t>(best.position)].pair_rank == best.rank) {
      apply(best, queue);
    }
  }
  for (int32_t i = 0; i < count; i = symbols_[static_cast<size_t>(i)].next) {
    out.push_back(symbols_[static_cast<size_t>(i)].id);
  }
}

void BpeMerger::offer(int32_t position, MergeQueue& queue) {
  Symbol& symbol = symbols_[static_cast<size_t>(position)];
  const auto next = static_cast<size_t>(symbol.next);
  symbol.pair_rank = next < symbols_.size() ? pairs_.rank(symbol.id, symbols_[next].id) : kNoRank;
  if (symbol.pair_rank != kNoRank) {
    queue.push(symbol.pair_rank, position);
  }
}

void BpeMerger::apply(MergeQueue::Candidate candidate, MergeQueue& queue) {
  Symbol& left = symbols_[static_cast<size_t>(candidate.position)];
  Symbol& right = symbols_[static_cast<size_t>(left.next)];
  left.id = pairs_.result(candidate.rank);
  left.next = right.next;
  right.pair_rank = kNoRank;
  if (static_cast<size_t>(left.next) < symbols_.size()) {
    symbols_[static_cast<size_t>(left.next)].previous = candidate.position;
  }
  offer(candidate.position, queue);
  if (left.previous >= 0) {
    offer(left.previous, queue);
  }
}

}  // namespace octet
