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
  confidence.clear();
  q.clear();
  logits.clear();
}

void Proposal::truncate(int64_t count) {
  const auto kept = static_cast<size_t>(count);
  tokens.resize(std::min(tokens.size(), kept));
  confidence.resize(std::min(confidence.size(), kept));
  if (q.size() > kept) {
    q.erase(q.begin() + static_cast<std::ptrdiff_t>(kept), q.end());
  }
}

void cut_after_end(Proposal& proposal, std::span<const TokenId> stop_tokens) {
  const auto end = std::find_first_of(
      proposal.tokens.begin(), proposal.tokens.end(), stop_tokens.begin(), stop_tokens.end()
  );
  if (end != proposal.tokens.end()) {
    proposal.truncate(end - proposal.tokens.begin() + 1);
  }
}

}  // namespace octet
