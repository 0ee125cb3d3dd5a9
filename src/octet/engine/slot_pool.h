// The slots of an engine: which one serves a new prompt best, and which may go when memory is
// short. Beginnings that many texts share are copied, a conversation's own slot is continued,
// pinned ones stay. Knows nothing of requests or time. Invariant: idle slots are evicted by use,
// the longest unused first, never a pinned one and never one in use; together they stay below the
// ceiling as far as that allows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/engine/slot.h"

namespace octet {

struct SlotPoolOptions {
  int64_t slots = 16;               // most slots, in use or idle
  int64_t bytes_limit = 0;          // of all keys, values and draft contexts; 0: no ceiling
  int64_t draft_context_bytes = 0;  // of one text, at most
  int64_t context_length = 0;
  KvType kv_type = KvType::kBF16;
};

class SlotPool {
 public:
  SlotPool(const TargetModel& target, Drafter& drafter, SlotPoolOptions options);

  struct Lease {
    Slot* slot = nullptr;  // null: every slot is in use
    int64_t kept = 0;      // positions of the prompt that it already holds
  };
  /// A slot for a text that starts with `prompt` and may grow to `positions`.
  Lease acquire(std::span<const TokenId> prompt, int64_t positions);
  /// The text in the slot may be continued by whoever comes.
  void release(Slot& slot);
  /// Released, and never evicted.
  void pin(Slot& slot);

  /// Idle texts that are beginnings of `text` and longer than `length` are cut to it, or as close
  /// below it as their caches can return to.
  void cut(std::span<const TokenId> text, int64_t length);

  /// Gives up idle texts, as far as that helps, until so many more bytes stay below the ceiling.
  void make_room(int64_t bytes);

  /// Gives up what idle slots hold.
  void forget_idle();

  /// Keeps a copy of the slot's first `length` positions as a slot of its own, unless one that can
  /// return there exists. Returns whether there is one now.
  bool keep_copy(const Slot& from, int64_t length);

  /// The most positions of `prompt` that acquire() would find.
  int64_t longest_prefix(std::span<const TokenId> prompt) const;

  int64_t bytes() const;
  int64_t draft_context_bytes() const;  // of bytes()
  int64_t bytes_limit() const { return options_.bytes_limit; }
  int64_t in_use() const;
  int64_t idle() const { return static_cast<int64_t>(entries_.size()) - in_use(); }
  int64_t pinned() const;
  int64_t pinned_bytes() const;
  int64_t evictions() const { return evictions_; }
  /// Most bytes of a text of so many positions.
  int64_t bytes_at(int64_t positions) const;

 private:
  enum class Use : uint8_t { kBusy, kIdle, kPinned };
  struct Entry {
    std::unique_ptr<Slot> slot;
    Use use = Use::kIdle;
    int64_t last_use = 0;
  };

  Entry& entry_of(const Slot& slot);
  Entry* best_source(std::span<const TokenId> prompt, int64_t& kept);
  /// A slot that holds nothing anybody may need, or null. `spared` is not taken.
  Slot* fresh(const Slot* spared, int64_t bytes_needed);
  bool evict_one(const Slot* spared);

  const TargetModel& target_;
  Drafter& drafter_;
  SlotPoolOptions options_;
  std::unique_ptr<SequenceCache> measure_;  // stays empty: tells what caches will take
  std::vector<Entry> entries_;
  int64_t clock_ = 0;
  int64_t evictions_ = 0;
};

}  // namespace octet
