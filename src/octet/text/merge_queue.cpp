#include "octet/text/merge_queue.h"

#include <algorithm>
#include <functional>

namespace octet {

void MergeQueue::push(MergeCandidate candidate) {
  if (lists_.empty() || !append(candidate)) {
    heap_.push_back(key_of(candidate));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
}

MergeCandidate MergeQueue::pop() {
  const MergeCandidate listed = first_listed();
  if (heap_.empty() || key_of(listed) < heap_.front()) {
    return listed.rank == kNoRank ? listed : pop_listed();
  }
  const uint64_t key = heap_.front();
  std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
  heap_.pop_back();
  return {static_cast<MergeRank>(key >> 32), static_cast<int32_t>(key & 0xFFFFFFFF)};
}

/// Adds to the list of its rank; false when the candidate comes out of order.
bool MergeQueue::append(MergeCandidate candidate) {
  List& list = lists_[candidate.rank];
  if (list.head == nullptr) {
    list.head = list.tail = new_block();
    ranks_.push_back(candidate.rank);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  } else if (list.tail->positions[list.tail->end - 1] > candidate.position) {
    return false;
  } else if (list.tail->end == Block::kCapacity) {
    list.tail->next = new_block();
    list.tail = list.tail->next;
  }
  list.tail->positions[list.tail->end++] = candidate.position;
  return true;
}

MergeCandidate MergeQueue::first_listed() const {
  if (ranks_.empty()) {
    return {};
  }
  const Block& block = *lists_[ranks_.front()].head;
  return {ranks_.front(), block.positions[block.begin]};
}

MergeCandidate MergeQueue::pop_listed() {
  const MergeCandidate first = first_listed();
  List& list = lists_[first.rank];
  Block* block = list.head;
  if (++block->begin == block->end) {
    list.head = block->next;
    block->next = free_;
    free_ = block;
    if (list.head == nullptr) {
      std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
      ranks_.pop_back();
    }
  }
  return first;
}

MergeQueue::Block* MergeQueue::new_block() {
  if (free_ == nullptr) {
    return &blocks_.emplace_back();
  }
  Block* block = free_;
  free_ = block->next;
  block->next = nullptr;
  block->begin = block->end = 0;
  return block;
}

}  // namespace octet
