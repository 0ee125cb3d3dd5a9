#include "octet/speculation/drafters/scripted_drafter.h"

#include <algorithm>
#include <utility>

#include "octet/base/check.h"

namespace octet {
namespace {

struct ScriptedState : DraftState {
  int64_t reference = -1;  // not chosen yet
};

int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

/// Index of the text that shares the longest prefix with `tokens`; the first of equals.
int64_t closest(const std::vector<std::vector<TokenId>>& texts, std::span<const TokenId> tokens) {
  const auto best = std::max_element(texts.begin(), texts.end(), [&](const auto& a, const auto& b) {
    return common_prefix(a, tokens) < common_prefix(b, tokens);
  });
  return best - texts.begin();
}

}  // namespace

ScriptedDrafter::ScriptedDrafter(Script script, int64_t vocabulary, int max_drafts, int right_rows)
    : script_(script),
      vocabulary_(vocabulary),
      max_drafts_(max_drafts),
      right_rows_(
          script == Script::kOracle ? max_drafts
          : script == Script::kLiar ? 0
                                    : right_rows
      ) {
  OCTET_CHECK(vocabulary >= 2 && max_drafts >= 1 && max_drafts <= kMaxDrafts);
}

void ScriptedDrafter::add_reference(std::vector<TokenId> text) {
  references_.push_back(std::move(text));
}

std::string_view ScriptedDrafter::name() const {
  switch (script_) {
    case Script::kOracle:
      return "oracle";
    case Script::kLiar:
      return "liar";
    case Script::kHalf:
      return "half";
  }
  return "oracle";
}

std::unique_ptr<DraftState> ScriptedDrafter::new_state(int64_t /*positions*/) const {
  return std::make_unique<ScriptedState>();
}

void ScriptedDrafter::propose(std::span<DraftTask> tasks) {
  if (references_.empty()) {
    return;
  }
  for (const DraftTask& task : tasks) {
    auto& state = static_cast<ScriptedState&>(*task.state);
    if (state.reference < 0) {
      state.reference = closest(references_, task.tokens);
    }
    const std::vector<TokenId>& text = references_[static_cast<size_t>(state.reference)];
    const auto first = task.tokens.size();
    for (int j = 0; j < task.count && first + static_cast<size_t>(j) < text.size(); ++j) {
      const TokenId right = text[first + static_cast<size_t>(j)];
      const auto wrong = static_cast<TokenId>((right + 1) % vocabulary_);
      task.out->tokens.push_back(j < right_rows_ ? right : wrong);
    }
  }
}

void ScriptedDrafter::truncate(DraftState& state, int64_t /*length*/) {
  static_cast<ScriptedState&>(state).reference = -1;
}

}  // namespace octet
