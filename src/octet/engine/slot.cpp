#include "octet/engine/slot.h"

#include <algorithm>

namespace octet {
namespace {

// Rows that are processed again for the drafter alone, at most. A row of a prompt takes about a
// sixth of a decode step at full shape, and drafts from little context are right less often for a
// while: more rows than this cost more than they give back in a reply of a hundred tokens.
constexpr int64_t kMostRowsForDrafter = 64;

}  // namespace

int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::ranges::mismatch(a, b).in1 - a.begin();
}

Slot::Slot(const TargetModel& target, Drafter& drafter, int64_t context_length, KvType kv_type)
    : drafter_(drafter) {
  sequence.cache = target.new_cache(context_length, kv_type);
  sequence.draft_state = drafter.new_state(context_length);
  sequence.context_length = context_length;
}

Slot::Reusable Slot::reusable(std::span<const TokenId> prompt) const {
  const int64_t shared = std::min(
      {common_prefix(sequence.tokens, prompt), std::ssize(prompt) - 1, sequence.cache->length()}
  );
  if (can_return_to(shared)) {
    return {shared, true};
  }
  // The rows between are processed again, for the drafter to see them: where this text is drafted.
  const bool drafted = !policy_ || policy_->drafting();
  const int64_t earlier =
      shared - std::min({shared, drafter_.feature_window(), kMostRowsForDrafter});
  if (drafted && earlier > 0 && sequence.cache->can_truncate(earlier)) {
    return {earlier, false};
  }
  // Drafting from no context for a while costs less than a whole prompt.
  return {sequence.cache->can_truncate(shared) ? shared : 0, false};
}

bool Slot::can_return_to(int64_t length) const {
  return length <= sequence.cache->length() && sequence.cache->can_truncate(length) &&
         drafter_.can_truncate(*sequence.draft_state, length);
}

bool Slot::remembers(int64_t length, int64_t rows) const {
  const int64_t end = sequence.cache->length() + rows;
  return end <= sequence.cache->keeps_until(length) &&
         end - length <= drafter_.spare_positions(*sequence.draft_state);
}

void Slot::keep(int64_t length) {
  sequence.tokens.resize(static_cast<size_t>(std::min(length, sequence.length())));
  sequence.cache->truncate(length);
  drafter_.truncate(*sequence.draft_state, length);
}

void Slot::copy_prefix(const Slot& from, int64_t length) {
  sequence.tokens.clear();  // a copy that memory ends half-way claims nothing
  sequence.cache->copy_prefix(*from.sequence.cache, length);
  drafter_.copy_prefix(*sequence.draft_state, *from.sequence.draft_state, length);
  sequence.tokens.assign(
      from.sequence.tokens.begin(), from.sequence.tokens.begin() + static_cast<ptrdiff_t>(length)
  );
}

BlockPolicy& Slot::policy(const BlockPolicy& fresh, const std::optional<BlockPolicy>& habits) {
  if (!policy_ || policy_->max_drafts() != fresh.max_drafts()) {
    const bool known = habits && habits->max_drafts() == fresh.max_drafts();
    policy_.emplace(known ? habits->for_another_text() : fresh);
  }
  return *policy_;
}

int64_t Slot::bytes() const {
  return sequence.cache->bytes() + sequence.draft_state->bytes();
}

}  // namespace octet
