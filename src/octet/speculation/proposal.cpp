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

}  // namespace octet
