// A compiled grammar: an automaton, the vocabulary, and the states that its matchers have made. Not
// for compiling (grammar.h) or following (matcher.h).
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "octet/grammar/automaton.h"
#include "octet/grammar/grammar_states.h"
#include "octet/grammar/token_table.h"

namespace octet {

class Grammar {
 public:
  Grammar(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTable> tokens)
      : automaton_(std::move(automaton)), tokens_(std::move(tokens)) {
    states_ = std::make_shared<GrammarStates>(automaton_, tokens_);
  }

  const Automaton& automaton() const { return *automaton_; }
  const TokenTable& tokens() const { return *tokens_; }

  /// For a new matcher. What earlier texts have left is used again as long as it is not too much.
  std::shared_ptr<GrammarStates> states() const {
    const std::lock_guard lock(mutex_);
    if (states_->crowded()) {
      states_ = std::make_shared<GrammarStates>(automaton_, tokens_);
    }
    return states_;
  }

 private:
  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const TokenTable> tokens_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<GrammarStates> states_;
};

}  // namespace octet
