// Requests to an engine over the shipped pair, at random and by hand, and what the target alone
// writes for them: for tests that hold replies in company against it. Not for requests of the API.
// Invariant: a request of a seed is the same in every run.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "octet/engine/engine.h"
#include "octet/engine/generator.h"
#include "octet/engine/grammar_constraint.h"
#include "octet/engine/thinking_budget.h"
#include "octet/grammar/grammar.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/random_models.h"
#include "support/shipped_pair.h"

namespace octet::test {

inline constexpr int64_t kContext = 900;

inline ShippedPair& pair() {
  static ShippedPair shipped(48);  // small chunks: rings wrap, prompts take many steps
  return shipped;
}

inline const std::vector<std::string> kSystems = {
    "You are a shopkeeper. You sell swords, shields and bread, and you like to talk about the "
    "town, "
    "the road to the north, the old bridge and the weather. Keep it short and friendly. ",
    "You are a small robot on a table. You can dance, blink and tell stories about the sea. ",
};
inline const std::vector<std::string> kQuestions = {
    "What is the capital of Finland?",
    "Tell me a story about a mouse.",
    "What is 12 plus 30?",
    "Do you sell bread?",
    "Give me a Python function that computes the factorial of a number.",
    "Start a timer for the cake.",
};

struct Conversation {
  std::string text;
  std::vector<int64_t> marks;
};

/// A system turn, and a question; the mark is the end of the system turn.
inline Conversation conversation(size_t system, size_t question, bool thinking) {
  const std::string first = "<|turn>system\n" + std::string(thinking ? "<|think|>\n" : "") +
                            kSystems[system % kSystems.size()] + "<turn|>\n";
  const std::string rest =
      "<|turn>user\n" + kQuestions[question % kQuestions.size()] + "<turn|>\n<|turn>model\n";
  return {first + rest, {std::ssize(pair().prompt(first))}};
}

inline GenerateRequest request_for(const Conversation& conversation) {
  GenerateRequest request;
  request.prompt = pair().prompt(conversation.text);
  request.marks = conversation.marks;
  request.max_tokens = 40;
  return request;
}

inline EngineRequest engine_request(GenerateRequest generate) {
  EngineRequest request;
  request.generate = std::move(generate);
  return request;
}

/// A request with what the engine adds to it.
struct Wanted {
  GenerateRequest generate;
  std::optional<int64_t> thinking_budget;
  std::vector<TokenId> thinking_close;
  std::shared_ptr<const Grammar> grammar;

  std::unique_ptr<TokenConstraint> constraint() const {
    return grammar != nullptr ? std::make_unique<GrammarConstraint>(grammar) : nullptr;
  }
  EngineRequest engine_request() const {
    EngineRequest request;
    request.generate = generate;
    request.thinking_budget = thinking_budget;
    request.thinking_close = thinking_close;
    request.constraint = constraint();
    return request;
  }
};

inline std::shared_ptr<const Grammar> random_grammar(RandomNumbers& random, ThoughtStart thought) {
  static GrammarCompiler compiler(pair().tokenizer);
  switch (random.integer(0, 2)) {
    case 0:
      return compiler.json_object(thought);
    case 1:
      return compiler.choice(
          std::vector<std::string>{"Helsinki is it.", "Helsinki", "I do not know, sorry."}, thought
      );
    default:
      return compiler.regex("[A-Z][a-z ,]{3,60}\\.", thought);
  }
}

inline SamplingParams random_sampling(RandomNumbers& random) {
  SamplingParams sampling;
  sampling.seed = random.bits();
  if (random.integer(0, 1) == 0) {
    sampling.temperature = static_cast<float>(0.3 + random.uniform());
    sampling.top_k = random.integer(0, 40);
    sampling.top_p = static_cast<float>(1.0 - 0.3 * random.uniform());
    sampling.min_p = random.integer(0, 1) == 0 ? 0.05F : 0.0F;
  }
  if (random.integer(0, 2) == 0) {
    sampling.repetition_penalty = 1.2F;
    sampling.presence_penalty = 0.3F;
  }
  if (random.integer(0, 2) == 0) {
    sampling.frequency_penalty = 0.4F;
    sampling.penalty_last_n = random.integer(0, 12);
  }
  for (int64_t i = random.integer(0, 3); i > 0; --i) {
    sampling.logit_bias.push_back(
        {static_cast<TokenId>(random.integer(260, 900)),
         static_cast<float>(6.0 * random.uniform() - 3.0)}
    );
  }
  return sampling;
}

inline Wanted random_request(RandomNumbers& random) {
  const bool thinking = random.integer(0, 2) == 0;
  Wanted wanted;
  GenerateRequest& request = wanted.generate;
  request = request_for(conversation(
      static_cast<size_t>(random.integer(0, 1)), static_cast<size_t>(random.integer(0, 5)), thinking
  ));
  request.max_tokens = random.integer(1, 60);
  request.draft_max = static_cast<int>(random.integer(0, 7));
  request.adapt_drafts = random.integer(0, 1) == 0;
  request.sampling = random_sampling(random);
  request.scores = random.integer(0, 3) == 0 ? random.integer(0, 4) : -1;
  if (random.integer(0, 2) == 0) {
    request.stop_strings = {"e t", "."};
    request.stop_in_speech = random.integer(0, 1) == 0;
  }
  if (thinking && random.integer(0, 1) == 0) {
    wanted.thinking_budget = random.integer(0, 12);
    wanted.thinking_close = pair().encode("\nEnough.\n<channel|>");
  }
  if (random.integer(0, 3) == 0) {
    wanted.grammar =
        random_grammar(random, thinking ? ThoughtStart::kMayOpen : ThoughtStart::kNone);
  } else if (random.integer(0, 3) == 0) {
    request.min_tokens = random.integer(1, request.max_tokens);
  }
  if (wanted.grammar == nullptr && random.integer(0, 3) == 0) {
    request.stop_tokens = {pair().tokenizer->stop_ids()[0], pair().encode(" the")[0]};
  }
  return wanted;
}

/// What the target alone writes.
inline GenerateResult plain_reply(const Wanted& wanted) {
  NoDrafter none;
  Generator generator(*pair().target, none, *pair().tokenizer, {kContext});
  ThinkingBudget thinking(
      *pair().tokenizer, {wanted.thinking_budget, wanted.thinking_close}, wanted.constraint()
  );
  thinking.start(wanted.generate.prompt);
  GenerateRequest request = wanted.generate;
  request.draft_max = 0;
  request.constraint = &thinking;
  return generator.generate(request);
}

inline GenerateResult plain_reply(const GenerateRequest& request) {
  return plain_reply(Wanted{request, std::nullopt, {}, nullptr});
}

struct Outcome {
  ReplyFinished finished;
  std::vector<TokenId> tokens;  // as they came
  std::vector<int64_t> scored;  // of each: likeliest tokens that came with it; -1: no scores
  std::string text;
};

inline Outcome outcome_of(ReplyStream& stream) {
  Outcome outcome;
  for (;;) {
    ReplyStreamEvent event = stream.next();
    if (auto* tokens = std::get_if<ReplyTokens>(&event)) {
      for (const EmittedToken& token : tokens->tokens) {
        outcome.tokens.push_back(token.token);
        outcome.scored.push_back(token.scores ? std::ssize(token.scores->best) : -1);
        outcome.text += token.text;
      }
    } else if (auto* failed = std::get_if<ReplyFailed>(&event)) {
      ADD_FAILURE() << failed->error.what();
      return outcome;
    } else if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      outcome.finished = std::move(*finished);
      outcome.text += outcome.finished.rest;
      return outcome;
    }
  }
}

inline void wait_until_idle(const Engine& engine) {
  for (int i = 0; i < 2000 && !engine.idle(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(engine.idle());
}

inline EngineOptions options_of(int parallel) {
  EngineOptions options;
  options.context_length = kContext;
  options.parallel = parallel;
  options.queue_length = 64;
  options.shared_prompt_rows = 32;
  return options;
}

inline void expect_same(const Outcome& outcome, const GenerateResult& plain) {
  EXPECT_EQ(outcome.finished.result.tokens, plain.tokens);
  EXPECT_EQ(outcome.tokens, plain.tokens);
  EXPECT_EQ(outcome.finished.result.finish, plain.finish);
  EXPECT_EQ(outcome.text, plain.text);
}

}  // namespace octet::test
