#include "octet/engine/slot_pool.h"

#include <algorithm>
#include <new>

#include "octet/base/check.h"
#include "octet/base/error.h"

namespace octet {
namespace {

// A slot whose text goes on for no longer than this behind the shared part is simply continued: to
// process that much again costs no more than a copy.
constexpr int64_t kShortTail = 16;

}  // namespace

SlotPool::SlotPool(const TargetModel& target, Drafter& drafter, SlotPoolOptions options)
    : target_(target),
      drafter_(drafter),
      options_(options),
      measure_(target.new_cache(options.context_length, options.kv_type)) {
  OCTET_CHECK(options_.slots >= 1);
}

SlotPool::Entry& SlotPool::entry_of(const Slot& slot) {
  const auto entry =
      std::ranges::find_if(entries_, [&](const Entry& e) { return e.slot.get() == &slot; });
  OCTET_CHECK(entry != entries_.end());
  return *entry;
}

SlotPool::Entry* SlotPool::best_source(std::span<const TokenId> prompt, int64_t& kept) {
  Entry* best = nullptr;
  Slot::Reusable most;
  for (Entry& entry : entries_) {
    const Slot::Reusable reusable = entry.slot->reusable(prompt);
    // Of equals one that the drafter knows too, then an idle one: it may be continued instead of
    // copied.
    const bool better = best == nullptr || reusable > most ||
                        (reusable == most && best->use == Use::kBusy && entry.use == Use::kIdle);
    if (reusable.length > 0 && better) {
      best = &entry;
      most = reusable;
    }
  }
  kept = most.length;
  return best;
}

int64_t SlotPool::longest_prefix(std::span<const TokenId> prompt) const {
  int64_t longest = 0;
  for (const Entry& entry : entries_) {
    longest = std::max(longest, entry.slot->reusable(prompt).length);
  }
  return longest;
}

SlotPool::Lease SlotPool::acquire(std::span<const TokenId> prompt, int64_t positions) {
  int64_t kept = 0;
  Entry* source = best_source(prompt, kept);
  Slot* from = source != nullptr ? source->slot.get() : nullptr;
  const bool may_continue = source != nullptr && source->use == Use::kIdle;
  // The same conversation going on: what lies behind is its own old reply.
  const bool own = may_continue && (kept >= from->sequence.prompt_length ||
                                    from->sequence.length() - kept <= kShortTail);
  Slot* slot = own ? from : fresh(from, bytes_at(positions));
  if (slot == nullptr && may_continue) {
    slot = from;
  }
  if (slot == nullptr && from != nullptr) {
    kept = 0;  // the source itself may be all that there is to take
    slot = fresh(nullptr, bytes_at(positions));
    from = nullptr;
  }
  if (slot == nullptr) {
    return {};
  }
  if (slot == from) {
    slot->keep(kept);
  } else if (from != nullptr) {
    slot->copy_prefix(*from, kept);
    entry_of(*from).last_use = ++clock_;
  } else {
    slot->forget();
  }
  Entry& entry = entry_of(*slot);
  entry.use = Use::kBusy;
  entry.last_use = ++clock_;
  return {slot, kept};
}

void SlotPool::release(Slot& slot) {
  Entry& entry = entry_of(slot);
  entry.use = Use::kIdle;
  entry.last_use = ++clock_;
  while (options_.bytes_limit > 0 && bytes() > options_.bytes_limit && evict_one(&slot)) {
  }
}

void SlotPool::make_room(int64_t bytes) {
  while (options_.bytes_limit > 0 && this->bytes() + bytes > options_.bytes_limit &&
         evict_one(nullptr)) {
  }
}

void SlotPool::pin(Slot& slot) {
  entry_of(slot).use = Use::kPinned;
}

void SlotPool::cut(std::span<const TokenId> text, int64_t length) {
  const std::span<const TokenId> kept = text.first(static_cast<size_t>(length));
  for (Entry& entry : entries_) {
    Slot& slot = *entry.slot;
    const int64_t own = slot.sequence.length();
    if (entry.use == Use::kIdle && own > length &&
        common_prefix(slot.sequence.tokens, text) == own) {
      // What the drafter has forgotten is dealt with when somebody goes on from there.
      slot.keep(slot.sequence.cache->can_truncate(length) ? length : slot.reusable(kept).length);
    }
  }
}

void SlotPool::forget_idle() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.use == Use::kIdle; });
}

bool SlotPool::keep_copy(const Slot& from, int64_t length) {
  const std::span<const TokenId> prefix(from.sequence.tokens.data(), static_cast<size_t>(length));
  for (const Entry& entry : entries_) {
    const Slot& slot = *entry.slot;
    if (&slot != &from && common_prefix(slot.sequence.tokens, prefix) == length &&
        slot.can_return_to(length)) {
      return true;
    }
  }
  Slot* copy = nullptr;
  try {
    copy = fresh(&from, bytes_at(length));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kResourceExhausted) {
      throw;
    }
    return false;  // the system has no memory for what would only save time
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (copy == nullptr) {
    return false;
  }
  if (options_.bytes_limit > 0 && bytes() + bytes_at(length) > options_.bytes_limit) {
    entries_.pop_back();  // the new one; those in use need the room
    return false;
  }
  copy->copy_prefix(from, length);
  copy->sequence.prompt_length = length;
  Entry& entry = entry_of(*copy);
  entry.use = Use::kIdle;
  entry.last_use = ++clock_;
  return true;
}

Slot* SlotPool::fresh(const Slot* spared, int64_t bytes_needed) {
  while (options_.bytes_limit > 0 && bytes() + bytes_needed > options_.bytes_limit) {
    if (!evict_one(spared)) {
      break;  // what is in use may stay; the ceiling is kept by admission
    }
  }
  if (std::ssize(entries_) >= options_.slots && !evict_one(spared)) {
    return nullptr;
  }
  entries_.push_back(
      {std::make_unique<Slot>(target_, drafter_, options_.context_length, options_.kv_type)}
  );
  return entries_.back().slot.get();
}

bool SlotPool::evict_one(const Slot* spared) {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->use == Use::kIdle && entry->slot.get() != spared &&
        (oldest == entries_.end() || entry->last_use < oldest->last_use)) {
      oldest = entry;
    }
  }
  if (oldest == entries_.end()) {
    return false;
  }
  entries_.erase(oldest);
  ++evictions_;
  return true;
}

int64_t SlotPool::bytes() const {
  int64_t total = 0;
  for (const Entry& entry : entries_) {
    total += entry.slot->bytes();
  }
  return total;
}

int64_t SlotPool::draft_context_bytes() const {
  int64_t total = 0;
  for (const Entry& entry : entries_) {
    total += entry.slot->sequence.draft_state->bytes();
  }
  return total;
}

int64_t SlotPool::in_use() const {
  return std::ranges::count_if(entries_, [](const Entry& e) { return e.use == Use::kBusy; });
}

int64_t SlotPool::pinned() const {
  return std::ranges::count_if(entries_, [](const Entry& e) { return e.use == Use::kPinned; });
}

int64_t SlotPool::pinned_bytes() const {
  int64_t total = 0;
  for (const Entry& entry : entries_) {
    total += entry.use == Use::kPinned ? entry.slot->bytes() : 0;
  }
  return total;
}

int64_t SlotPool::bytes_at(int64_t positions) const {
  return measure_->bytes_at(positions) + options_.draft_context_bytes;
}

}  // namespace octet
