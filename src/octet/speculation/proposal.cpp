#include "octet/speculation/proposal.h"

#include <algorithm>

namespace octet {

DraftChoice DraftChoices::row(int j) const {
  const auto last = std::ssize(rows) - 1;
  return last < 0 ? DraftChoice::kArgmax : rows[static_cast<size_t>(std::min<int64_t>(j, last))];
}

DraftChoices default_draft_choices() {
  return {};
}

void Proposal::clear() {
  tokens.clear();
  q.clear();
  logits.clear();
}

void cut_after_end(Proposal& proposal, std::span<const TokenId> stop_tokens) {
  const auto end = std::find_first_of(
      proposal.tokens.begin(), proposal.tokens.end(), stop_tokens.begin(), stop_tokens.end()
  );
  if (end == proposal.tokens.end()) {
    return;
  }
  const auto kept = static_cast<size_t>(end - proposal.tokens.begin()) + 1;
  proposal.tokens.resize(kept);
  if (proposal.q.size() > kept) {
    proposal.q.erase(proposal.q.begin() + static_cast<std::ptrdiff_t>(kept), proposal.q.end());
  }
}

}  // namespace octet
