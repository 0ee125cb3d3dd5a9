#include "octet/grammar/matcher.h"

#include <algorithm>
#include <limits>

#include "octet/base/check.h"
#include "octet/grammar/compiled_grammar.h"

namespace octet {
namespace {

constexpr size_t kBytesPerForcedToken = 16;  // a bound on how far to look, not a measure

}  // namespace

Matcher::Matcher(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)),
      states_(grammar_->states()),
      history_({GrammarStates::kStart}) {}

bool Matcher::accept(TokenId token) {
  const StateId next = states_->next(history_.back(), token);
  if (next == GrammarStates::kDead) {
    return false;
  }
  history_.push_back(next);
  return true;
}

bool Matcher::allows(TokenId token) const {
  return states_->next(history_.back(), token) != GrammarStates::kDead;
}

void Matcher::rollback(int64_t n) {
  OCTET_CHECK(n >= 0 && n <= length());
  history_.resize(history_.size() - static_cast<size_t>(n));
}

bool Matcher::can_end() const {
  return states_->may_end(history_.back());
}

bool Matcher::ended() const {
  return history_.back() == GrammarStates::kEnded;
}

void Matcher::fill_mask(std::span<uint64_t> words) const {
  states_->fill_mask(history_.back(), words);
}

void Matcher::apply(std::span<float> logits) const {
  std::vector<uint64_t> words((logits.size() + 63) / 64);
  fill_mask(words);
  constexpr float kForbidden = -std::numeric_limits<float>::infinity();
  for (size_t word = 0; word < words.size(); ++word) {
    // Most words forbid or allow all of their tokens.
    const size_t begin = word * 64;
    const size_t end = std::min(begin + 64, logits.size());
    if (words[word] == 0) {
      std::fill(
          logits.begin() + static_cast<std::ptrdiff_t>(begin),
          logits.begin() + static_cast<std::ptrdiff_t>(end),
          kForbidden
      );
    } else if (words[word] != ~uint64_t{0}) {
      for (size_t i = begin; i < end; ++i) {
        logits[i] = ((words[word] >> (i - begin)) & 1U) != 0 ? logits[i] : kForbidden;
      }
    }
  }
}

std::vector<TokenId> Matcher::forced_tokens(int count) const {
  const Tokenizer& tokenizer = grammar_->tokens().tokenizer();
  std::vector<TokenId> out;
  StateId state = history_.back();
  while (static_cast<int>(out.size()) < count) {
    const auto wanted = static_cast<size_t>(count) - out.size();
    const GrammarStates::Forced forced = states_->forced(state, wanted * kBytesPerForcedToken);
    std::vector<TokenId> ids = tokenizer.encode(forced.bytes, SpecialTokens::kPlain);
    if (forced.open && !ids.empty()) {
      ids.pop_back();  // what follows may join its last piece
    }
    out.insert(out.end(), ids.begin(), ids.end());
    if (forced.token == kNoToken) {
      break;
    }
    out.push_back(forced.token);
    state = forced.behind;
  }
  out.resize(std::min(out.size(), static_cast<size_t>(std::max(count, 0))));
  return out;
}

}  // namespace octet
