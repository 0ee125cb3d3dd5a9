// Where the keys, values and draft context of one text live, between replies as well as during one.
// Knows how much of a new prompt is already there, and can be copied, so that many texts go on from
// one beginning. Which slot serves whom is not its business. Invariant: whatever is kept, the
// drafter finds what it would find had the kept part just been processed, wherever the models'
// caches still hold it.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "octet/base/token.h"
#include "octet/models/target_model.h"
#include "octet/speculation/block_policy.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/sequence.h"

namespace octet {

class Slot {
 public:
  /// `target` and `drafter` must outlive the slot.
  Slot(const TargetModel& target, Drafter& drafter, int64_t context_length, KvType kv_type);

  Sequence sequence;

  struct Reusable {
    int64_t length = 0;
    bool drafter_too = true;  // false: the drafter goes on from less context than it could have
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 misreads the defaulted operator
    auto operator<=>(const Reusable&) const = default;
  };
  /// How many positions of `prompt` need not be processed again; at most all but one, because the
  /// last one gives the logits. Prefers a place that both models can go on from; where only the
  /// drafter has forgotten, a place some rows earlier, for it to see them, unless drafting did not
  /// pay in this text.
  Reusable reusable(std::span<const TokenId> prompt) const;
  /// Whether [0, length) could be kept as though it had just been processed.
  bool can_return_to(int64_t length) const;
  /// Whether can_return_to(length), 0 or more, survives a step of `rows` rows.
  bool remembers(int64_t length, int64_t rows) const;

  /// Cuts the text and both caches to `length`.
  void keep(int64_t length);
  /// Becomes a copy of the first `length` positions of `from`.
  void copy_prefix(const Slot& from, int64_t length);
  void forget() { keep(0); }

  /// The policy of this text's replies, kept from one to the next because they resemble each other.
  /// The first one, and one for another most of drafts, begins with the habits of other texts'
  /// replies, or else as `fresh`.
  BlockPolicy& policy(const BlockPolicy& fresh, const std::optional<BlockPolicy>& habits);

  int64_t bytes() const;

 private:
  Drafter& drafter_;
  std::optional<BlockPolicy> policy_;
};

int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b);

}  // namespace octet
