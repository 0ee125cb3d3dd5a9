// The engine's laws: a reply is the same alone and in company, cold and warm, drafted and not,
// whatever is cancelled beside it; drafts are accepted as often warm as cold; and nothing is ever
// left running.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/engine/engine.h"
#include "octet/engine/generator.h"
#include "octet/engine/grammar_constraint.h"
#include "octet/engine/thinking_budget.h"
#include "octet/grammar/grammar.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "support/engine_requests.h"
#include "support/random_models.h"

namespace octet {
namespace {

using test::Conversation;
using test::conversation;
using test::engine_request;
using test::expect_same;
using test::kQuestions;
using test::kSystems;
using test::options_of;
using test::Outcome;
using test::outcome_of;
using test::pair;
using test::plain_reply;
using test::random_request;
using test::RandomNumbers;
using test::request_for;
using test::wait_until_idle;
using test::Wanted;

TEST(EngineLaws, CompanyWarmthAndDraftsChangeNothing) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers random(seed);
    std::vector<Wanted> requests;
    std::vector<GenerateResult> plain;
    for (int i = 0; i < 16; ++i) {
      requests.push_back(random_request(random));
      plain.push_back(plain_reply(requests.back()));
    }
    EngineOptions options = options_of(seed == 0 ? 16 : static_cast<int>(random.integer(2, 9)));
    options.slots = seed == 2 ? options.parallel : 0;  // none to spare: everything is evicted
    Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
    for (int round = 0; round < 2; ++round) {
      std::vector<std::shared_ptr<ReplyStream>> streams;
      for (const Wanted& request : requests) {
        streams.push_back(engine.submit(request.engine_request()));
        ASSERT_NE(streams.back(), nullptr);
      }
      for (size_t i = 0; i < streams.size(); ++i) {
        SCOPED_TRACE(fmt::format("round {}, request {}", round, i));
        const Outcome outcome = outcome_of(*streams[i]);
        expect_same(outcome, plain[i]);
        EXPECT_EQ(
            std::ranges::count(outcome.scored, requests[i].generate.scores),
            std::ssize(outcome.scored)
        );
      }
    }
    wait_until_idle(engine);
  }
}

TEST(EngineLaws, CancelsLeaveTheOthersAlone) {
  RandomNumbers random(7);
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(6));
  for (int round = 0; round < 3; ++round) {
    std::vector<Wanted> requests;
    std::vector<GenerateResult> plain_replies;  // before: the models are the engine's while it runs
    std::vector<std::shared_ptr<ReplyStream>> streams;
    std::vector<bool> doomed;
    for (int i = 0; i < 12; ++i) {
      requests.push_back(random_request(random));
      plain_replies.push_back(plain_reply(requests.back()));
      doomed.push_back(random.integer(0, 1) == 0);
    }
    for (const Wanted& request : requests) {
      streams.push_back(engine.submit(request.engine_request()));
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      if (doomed[i]) {
        std::this_thread::sleep_for(std::chrono::milliseconds(random.integer(0, 12)));
        streams[i]->cancel();
      }
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      SCOPED_TRACE(i);
      const Outcome outcome = outcome_of(*streams[i]);
      const GenerateResult& plain = plain_replies[i];
      if (!doomed[i] || outcome.finished.result.finish != FinishReason::kCancelled) {
        expect_same(outcome, plain);
      } else {
        ASSERT_LE(outcome.tokens.size(), plain.tokens.size());
        EXPECT_TRUE(std::equal(outcome.tokens.begin(), outcome.tokens.end(), plain.tokens.begin()));
      }
    }
    wait_until_idle(engine);
  }
}

/// Cancels a stream right after a step, on the worker's own thread, and counts steps.
class CancelAfter : public EngineObserver {
 public:
  explicit CancelAfter(int wanted) : wanted_(wanted) {}
  void on_step(const EngineStep& /*step*/) override {
    if (++steps == wanted_) {
      stream_.get_future().get()->cancel();
    }
  }
  void on_reply(const ReplyReport& report) override { finish = report.finish; }
  void set(std::shared_ptr<ReplyStream> stream) { stream_.set_value(std::move(stream)); }

  std::atomic<int> steps{0};
  std::atomic<FinishReason> finish{FinishReason::kNone};

 private:
  int wanted_;
  std::promise<std::shared_ptr<ReplyStream>> stream_;
};

// While the prompt is read and while words come: no step is made for it afterwards.
TEST(EngineLaws, ACancelledReplyGetsNoFurtherStep) {
  for (const int draft_max : {0, 7}) {
    for (const int steps : {1, 3, 7}) {
      SCOPED_TRACE(fmt::format("{} drafts, after step {}", draft_max, steps));
      CancelAfter observer(steps);
      Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2), &observer);
      GenerateRequest endless = request_for(conversation(0, 1, false));
      ASSERT_GT(std::ssize(endless.prompt), 48) << "the first step is of the prompt alone";
      endless.max_tokens = 300;
      endless.stop_tokens = std::vector<TokenId>{};
      endless.draft_max = draft_max;
      endless.adapt_drafts = false;
      const auto stream = engine.submit(engine_request(endless));
      observer.set(stream);
      const Outcome outcome = outcome_of(*stream);
      EXPECT_EQ(outcome.finished.result.finish, FinishReason::kCancelled);
      EXPECT_EQ(outcome.tokens.empty(), steps == 1);
      wait_until_idle(engine);
      EXPECT_EQ(observer.steps, steps);
      EXPECT_EQ(observer.finish, FinishReason::kCancelled) << "and it is counted so";
    }
  }
}

/// Free for `characters`, then ambiguous in more ways than a matcher follows: each d is eight texts
/// of which any may be missing, and so on.
std::shared_ptr<const Grammar> grammar_that_gives_up(GrammarCompiler& compiler, int characters) {
  return compiler.ebnf(
      fmt::format(
          "root ::= [^~]{{{}}} g [^~]*\n"
          "g ::= f f f f f f f f f f\n"
          "f ::= e e e e e e e e\n"
          "e ::= d d d d d d d d\n"
          "d ::= o o o o o o o o\n"
          "o ::= \"a\"?\n",
          characters
      ),
      ThoughtStart::kNone
  );
}

/// The tokens that came before the failure, and its message.
std::pair<std::vector<TokenId>, std::string> failure_of(ReplyStream& stream) {
  std::vector<TokenId> tokens;
  for (;;) {
    ReplyStreamEvent event = stream.next();
    if (auto* more = std::get_if<ReplyTokens>(&event)) {
      for (const EmittedToken& token : more->tokens) {
        tokens.push_back(token.token);
      }
    } else if (auto* failed = std::get_if<ReplyFailed>(&event)) {
      return {tokens, failed->error.what()};
    } else if (std::holds_alternative<ReplyFinished>(event)) {
      return {tokens, ""};
    }
  }
}

TEST(EngineLaws, AConstraintThatGivesUpEndsItsOwnReplyAlone) {
  RandomNumbers random(11);
  GrammarCompiler compiler(pair().tokenizer);
  const auto hopeless = grammar_that_gives_up(compiler, 60);
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(6));
  for (const int draft_max : {0, 7}) {
    SCOPED_TRACE(draft_max);
    std::vector<Wanted> requests;
    std::vector<GenerateResult> plain;
    for (int i = 0; i < 4; ++i) {
      requests.push_back(random_request(random));
      plain.push_back(plain_reply(requests.back()));
    }
    EngineRequest doomed = engine_request(request_for(conversation(0, 1, false)));
    doomed.generate.draft_max = draft_max;
    doomed.generate.adapt_drafts = false;
    doomed.generate.max_tokens = 100;
    const GenerateResult unconstrained = plain_reply(doomed.generate);
    doomed.constraint = std::make_unique<GrammarConstraint>(hopeless);
    const auto failing = engine.submit(std::move(doomed));
    std::vector<std::shared_ptr<ReplyStream>> streams;
    for (const Wanted& request : requests) {
      streams.push_back(engine.submit(request.engine_request()));
    }
    const auto [tokens, message] = failure_of(*failing);
    EXPECT_NE(message.find("ambiguous"), std::string::npos) << message;
    EXPECT_GT(tokens.size(), 3U) << "it speaks until the grammar gives up";
    ASSERT_LT(tokens.size(), unconstrained.tokens.size());
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), unconstrained.tokens.begin()));
    for (size_t i = 0; i < streams.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same(outcome_of(*streams[i]), plain[i]);
    }
    wait_until_idle(engine);
  }
}

/// Runs one request with a fixed draft length: its steps depend on the drafter's context alone.
Outcome fixed(Engine& engine, GenerateRequest request) {
  request.adapt_drafts = false;
  return outcome_of(*engine.submit(engine_request(std::move(request))));
}

void expect_equal_acceptance(const Outcome& a, const Outcome& b) {
  const AcceptanceStatistics& x = a.finished.result.acceptance;
  const AcceptanceStatistics& y = b.finished.result.acceptance;
  EXPECT_EQ(x.steps, y.steps);
  EXPECT_EQ(x.drafted, y.drafted);
  EXPECT_EQ(x.accepted, y.accepted);
  EXPECT_EQ(a.tokens, b.tokens);
}

TEST(EngineCache, WarmTextsDraftAsColdOnesDo) {
  const Conversation first = conversation(0, 1, false);
  const Conversation other = conversation(0, 3, false);
  const Conversation third = conversation(0, 4, false);
  GenerateRequest long_reply = request_for(first);
  long_reply.max_tokens = 420;  // longer than rings remember
  long_reply.stop_tokens = std::vector<TokenId>{};
  const std::string answer = "Once upon a time there was a mouse.<turn|>\n<|turn>user\nGo on.";
  GenerateRequest next =
      request_for({first.text + answer + "<turn|>\n<|turn>model\n", first.marks});
  Engine warm(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  fixed(warm, long_reply);
  int turn = 0;
  for (const GenerateRequest& request : {next, request_for(other), request_for(third)}) {
    SCOPED_TRACE(turn++);
    const Outcome hot = fixed(warm, request);
    Engine cold(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
    const Outcome fresh = fixed(cold, request);
    EXPECT_EQ(fresh.finished.report.reused_tokens, 0);
    EXPECT_GE(hot.finished.report.reused_tokens, first.marks.front());
    expect_equal_acceptance(hot, fresh);
  }
}

// A template that opens a reply with what a history leaves out makes texts part before the prompt's
// end. Prompts that are longer than the drafter's window, so that only its last rows are fed.
TEST(EngineCache, TextsPartShortlyBeforeAPromptsEnd) {
  std::string talk = conversation(0, 0, false).text;
  for (size_t i = 0; i < 6; ++i) {
    talk += kSystems[i % 2] + "<turn|>\n<|turn>user\n" + kQuestions[i] + "<turn|>\n<|turn>model\n";
  }
  const std::vector<TokenId> shared = pair().prompt(talk);
  ASSERT_GT(std::ssize(shared), 2 * pair().drafter->feature_window());
  const std::vector<TokenId> opening = pair().encode("<|channel>thought\n<channel|>");
  const std::vector<TokenId> answer =
      pair().encode("Yes.<turn|>\n<|turn>user\nTell me a story.<turn|>\n<|turn>model\n");
  for (const int64_t reply : {3, 300}) {  // shorter and longer than rings remember
    SCOPED_TRACE(reply);
    GenerateRequest first;
    first.prompt = shared;
    first.prompt.insert(first.prompt.end(), opening.begin(), opening.end());
    first.max_tokens = reply;
    first.stop_tokens = std::vector<TokenId>{};
    GenerateRequest second;
    second.prompt = shared;
    second.prompt.insert(second.prompt.end(), answer.begin(), answer.end());
    second.max_tokens = 60;
    Engine warm(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
    fixed(warm, first);
    const Outcome hot = fixed(warm, second);
    EXPECT_EQ(hot.finished.report.reused_tokens, std::ssize(shared));
    Engine cold(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
    expect_equal_acceptance(hot, fixed(cold, second));
  }
}

// Of two texts with one beginning, one that the drafter has half forgotten and one that it knows,
// the second is copied, and what goes on from there is never read again.
TEST(EngineCache, ABeginningIsCopiedWithWhatTheDrafterKnows) {
  const Conversation system = conversation(0, 0, false);
  Conversation longer = system;
  for (size_t i = 0; i < 6; ++i) {
    longer.text += kSystems[i % 2] + "<turn|>\n<|turn>user\n" + kQuestions[i] + "<turn|>\n";
  }
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  fixed(engine, request_for(longer));
  GenerateRequest talk = request_for(conversation(0, 2, false));
  talk.max_tokens = 12;
  int64_t known = talk.marks.front();
  for (int turn = 0; turn < 16; ++turn) {
    SCOPED_TRACE(turn);
    const Outcome reply = fixed(engine, talk);
    EXPECT_GE(reply.finished.report.reused_tokens, known);
    talk.prompt.insert(talk.prompt.end(), reply.tokens.begin(), reply.tokens.end());
    known = std::ssize(talk.prompt) - 1;
    const std::vector<TokenId> next =
        pair().encode("<turn|>\n<|turn>user\nAnd now?<turn|>\n<|turn>model\n");
    talk.prompt.insert(talk.prompt.end(), next.begin(), next.end());
  }
  ASSERT_GT(known, 2 * pair().drafter->feature_window());
}

TEST(EngineCache, ASecondTurnFindsTheFirst) {
  const Conversation first = conversation(1, 0, true);
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  const Outcome reply = fixed(engine, request_for(first));
  GenerateRequest next = request_for(first);
  next.prompt.insert(next.prompt.end(), reply.tokens.begin(), reply.tokens.end());
  const std::vector<TokenId> turn = pair().encode("\n<|turn>user\nAnd now?<turn|>\n<|turn>model\n");
  next.prompt.insert(next.prompt.end(), turn.begin(), turn.end());
  const Outcome second = fixed(engine, next);
  const int64_t old = reply.finished.report.prompt_tokens + std::ssize(reply.tokens);
  EXPECT_GE(second.finished.report.reused_tokens, old - 1);
  EXPECT_EQ(second.tokens, plain_reply(next).tokens);
}

// An interrupted reply: what lies behind the cut is gone, what lies before it is found, and the
// text that goes on from there is that of a cold start.
TEST(EngineCache, ACutReplyGoesOnFromTheCut) {
  const Conversation first = conversation(1, 0, true);
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  const Outcome reply = fixed(engine, request_for(first));
  GenerateRequest unheard = request_for(first);
  unheard.prompt.insert(unheard.prompt.end(), reply.tokens.begin(), reply.tokens.end());
  const int64_t prompt = reply.finished.report.prompt_tokens;
  const int64_t kept = prompt + std::ssize(reply.tokens) / 2;
  ASSERT_LT(kept, std::ssize(unheard.prompt) - 1);
  engine.cut_text(unheard.prompt, kept);
  GenerateRequest next = unheard;
  next.prompt.resize(static_cast<size_t>(kept));
  const std::vector<TokenId> turn =
      pair().encode("<turn|>\n<|turn>user\nStop!<turn|>\n<|turn>model\n");
  next.prompt.insert(next.prompt.end(), turn.begin(), turn.end());
  unheard.max_tokens = 1;
  EXPECT_EQ(fixed(engine, unheard).finished.report.reused_tokens, kept);
  const Outcome second = fixed(engine, next);
  EXPECT_EQ(second.finished.report.reused_tokens, kept);
  EXPECT_EQ(second.tokens, plain_reply(next).tokens);
  // Nothing that is kept goes on from another text.
  std::vector<TokenId> other = next.prompt;
  other.back() += 1;
  engine.cut_text(other, 2);
  EXPECT_GE(fixed(engine, next).finished.report.reused_tokens, std::ssize(next.prompt) - 1);
}

TEST(EngineCache, ManyConversationsStartFromOneSystemPrompt) {
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(8));
  std::vector<std::shared_ptr<ReplyStream>> streams;
  for (size_t i = 0; i < 6; ++i) {
    streams.push_back(engine.submit(engine_request(request_for(conversation(0, i, false)))));
  }
  int64_t cold = 0;
  for (const auto& stream : streams) {
    cold += outcome_of(*stream).finished.report.reused_tokens == 0 ? 1 : 0;
  }
  EXPECT_EQ(cold, 1);  // the others waited for it and copied
}

TEST(EngineCache, PinnedTextsStayAndMemoryHasACeiling) {
  EngineOptions options = options_of(2);
  options.cache_bytes = 4 << 20;
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
  const Conversation persona = conversation(0, 0, false);
  EngineRequest pin = engine_request(request_for(persona));
  pin.generate.prompt.resize(static_cast<size_t>(persona.marks.front()));
  pin.generate.marks.clear();
  pin.generate.max_tokens = 1;
  pin.pin_prompt = true;
  outcome_of(*engine.submit(std::move(pin)));
  for (size_t i = 0; i < 24; ++i) {
    GenerateRequest request = request_for(conversation(1, i, false));
    request.prompt.insert(request.prompt.begin() + 1, static_cast<TokenId>(300 + i));
    request.marks.clear();
    outcome_of(*engine.submit(engine_request(std::move(request))));
  }
  wait_until_idle(engine);
  const EngineStatus status = engine.status();
  EXPECT_EQ(status.slots_pinned, 1);
  EXPECT_GT(status.evictions, 0);
  EXPECT_LE(status.cache_bytes, options.cache_bytes);
  const Outcome reply = fixed(engine, request_for(persona));
  EXPECT_EQ(reply.finished.report.reused_tokens, persona.marks.front());
}

/// Memory for so many sequences more; then the system refuses.
class PoorDrafter : public NoDrafter {
 public:
  mutable std::atomic<int> states_left = 100;

  std::unique_ptr<DraftState> new_state(int64_t positions) const override {
    if (states_left-- <= 0) {
      throw Error(ErrorKind::kResourceExhausted, "the system refuses the memory");
    }
    return NoDrafter::new_state(positions);
  }
};

TEST(EngineCache, MemoryThatTheSystemRefusesEndsOneReplyAlone) {
  PoorDrafter drafter;
  Engine engine(*pair().target, drafter, pair().tokenizer, options_of(2));
  GenerateRequest request = request_for(conversation(0, 0, false));
  request.max_tokens = 400;  // its keys run over the system turn's: a copy would only save time
  for (const TokenId stop : pair().tokenizer->stop_ids()) {
    request.sampling.logit_bias.push_back({stop, -100.0F});
  }
  drafter.states_left = 1;
  expect_same(outcome_of(*engine.submit(engine_request(request))), plain_reply(request));
  EXPECT_LT(drafter.states_left, 0) << "a copy was asked for";
  const GenerateRequest other = request_for(conversation(1, 1, false));
  drafter.states_left = 0;
  EXPECT_NE(
      failure_of(*engine.submit(engine_request(other))).second.find("refuses"), std::string::npos
  );
  drafter.states_left = 100;
  expect_same(outcome_of(*engine.submit(engine_request(other))), plain_reply(other));
  wait_until_idle(engine);
}

TEST(EngineCache, RefusesATextThatCouldNeverFit) {
  EngineOptions options = options_of(2);
  options.cache_bytes = 1 << 16;
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
  EXPECT_THROW(engine.submit(engine_request(request_for(conversation(0, 0, false)))), Error);
}

TEST(Engine, TheQueueIsBounded) {
  EngineOptions options = options_of(1);
  options.queue_length = 2;
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
  GenerateRequest request = request_for(conversation(0, 1, false));
  request.max_tokens = 200;
  request.stop_tokens = std::vector<TokenId>{};
  std::vector<std::shared_ptr<ReplyStream>> streams;
  while (auto stream = engine.submit(engine_request(request))) {
    streams.push_back(stream);
    ASSERT_LE(streams.size(), 4U);
  }
  EXPECT_GE(streams.size(), 2U);
  engine.cancel_all();
  for (const auto& stream : streams) {
    EXPECT_EQ(outcome_of(*stream).finished.result.finish, FinishReason::kCancelled);
  }
  engine.drain();
  wait_until_idle(engine);
  EXPECT_EQ(engine.submit(engine_request(request)), nullptr);
}

TEST(Engine, DeadlinesEndReplies) {
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(1));
  GenerateRequest endless = request_for(conversation(0, 1, false));
  endless.max_tokens = 700;
  endless.stop_tokens = std::vector<TokenId>{};
  EngineRequest limited = engine_request(endless);
  limited.deadline_ms = limited.speech_deadline_ms = 60.0;
  const auto first = engine.submit(std::move(limited));
  EngineRequest impatient = engine_request(endless);
  impatient.first_token_deadline_ms = 1.0;  // it waits for the one before
  const auto second = engine.submit(std::move(impatient));
  const Outcome waited = outcome_of(*second);
  EXPECT_EQ(waited.finished.result.finish, FinishReason::kDeadline);
  EXPECT_TRUE(waited.tokens.empty());
  const Outcome cut = outcome_of(*first);
  EXPECT_EQ(cut.finished.result.finish, FinishReason::kDeadline);
  const std::vector<TokenId> whole = plain_reply(endless).tokens;
  EXPECT_TRUE(std::equal(cut.tokens.begin(), cut.tokens.end(), whole.begin()));
}

TEST(Engine, UrgentRepliesOvertake) {
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(1));
  GenerateRequest slow = request_for(conversation(0, 1, false));
  slow.max_tokens = 500;
  slow.stop_tokens = std::vector<TokenId>{};
  EngineRequest background = engine_request(slow);
  background.priority = -1;
  const auto behind = engine.submit(std::move(background));
  behind->next();  // it runs
  const auto urgent = engine.submit(engine_request(request_for(conversation(1, 0, false))));
  const Outcome first = outcome_of(*urgent);
  int64_t seen = 0;
  while (auto event = behind->try_next()) {
    if (const auto* tokens = std::get_if<ReplyTokens>(&*event)) {
      seen += std::ssize(tokens->tokens);
    }
    ASSERT_FALSE(std::holds_alternative<ReplyFinished>(*event));
  }
  const Outcome rest = outcome_of(*behind);
  EXPECT_EQ(seen + std::ssize(rest.tokens), 500);
  EXPECT_EQ(rest.finished.result.tokens, plain_reply(slow).tokens);
  EXPECT_EQ(first.tokens, plain_reply(request_for(conversation(1, 0, false))).tokens);
}

int64_t thoughts_of(const std::vector<TokenId>& tokens) {
  const ChatTokens& chat = pair().tokenizer->chat_tokens();
  int64_t count = 0;
  bool inside = false;
  bool label = false;
  for (const TokenId token : tokens) {
    if (token == chat.channel_open) {
      inside = label = true;
    } else if (token == chat.channel_close) {
      inside = false;
    } else if (inside && !label) {
      ++count;
    } else if (label && pair().tokenizer->bytes(token).find('\n') != std::string_view::npos) {
      label = false;
    }
  }
  return count;
}

TEST(EngineThinking, BudgetsAreExactWithAndWithoutDrafts) {
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  GenerateRequest request = request_for(conversation(0, 2, true));
  request.max_tokens = 80;
  const int64_t natural = thoughts_of(plain_reply(request).tokens);
  ASSERT_GT(natural, 4) << "this question gets no thought to cut";
  for (const int64_t budget : {int64_t{0}, int64_t{1}, int64_t{3}, natural - 1, natural + 5}) {
    SCOPED_TRACE(budget);
    std::vector<std::vector<TokenId>> texts;
    for (const int draft_max : {0, 1, 7}) {
      EngineRequest own = engine_request(request);
      own.generate.draft_max = draft_max;
      own.generate.adapt_drafts = false;
      own.thinking_budget = budget;
      own.thinking_close = pair().encode("\nEnough.\n<channel|>");
      const Outcome outcome = outcome_of(*engine.submit(std::move(own)));
      texts.push_back(outcome.tokens);
      EXPECT_EQ(outcome.finished.thinking_closed, budget < natural && budget > 0);
      EXPECT_EQ(outcome.finished.thinking_tokens, std::min(budget, natural));
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(texts[0], texts[2]);
    if (budget > 0 && budget < natural) {
      const std::vector<TokenId> close = pair().encode("\nEnough.\n<channel|>");
      EXPECT_NE(std::ranges::search(texts[0], close).begin(), texts[0].end());
      EXPECT_EQ(thoughts_of(texts[0]), budget + std::ssize(close) - 1);
    }
  }
}

// Without thoughts, and behind one that a budget has ended, what a grammar is certain of is still
// written without a step for each token.
TEST(EngineThinking, ForcedRunsGoOnWithoutABudget) {
  GrammarCompiler compiler(pair().tokenizer);
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  for (const int64_t budget : {int64_t{0}, int64_t{2}}) {
    SCOPED_TRACE(budget);
    Wanted wanted;
    wanted.generate = request_for(conversation(0, 2, true));
    wanted.thinking_budget = budget;
    wanted.thinking_close = pair().encode("\nEnough.\n<channel|>");
    wanted.grammar = compiler.choice(
        std::vector<std::string>{"Of all that I know this is the best."}, ThoughtStart::kMayOpen
    );
    const Outcome outcome = outcome_of(*engine.submit(wanted.engine_request()));
    expect_same(outcome, plain_reply(wanted));
    EXPECT_GT(outcome.finished.result.acceptance.forced, 4);
  }
}

TEST(EngineThinking, EndsOnDemand) {
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(1));
  GenerateRequest request = request_for(conversation(0, 4, true));
  request.max_tokens = 300;
  ASSERT_GT(thoughts_of(plain_reply(request).tokens), 8) << "this thought ends soon anyway";
  // Behind another reply, so that it has not begun when its thought is ended.
  GenerateRequest before = request;
  before.max_tokens = 700;
  for (const TokenId stop : pair().tokenizer->stop_ids()) {
    before.sampling.logit_bias.push_back({stop, -100.0F});
  }
  const auto first = engine.submit(engine_request(before));
  const auto stream = engine.submit(engine_request(request));
  stream->end_thinking();
  first->cancel();
  const Outcome outcome = outcome_of(*stream);
  EXPECT_LE(outcome.finished.thinking_tokens, 8);
  EXPECT_EQ(outcome.finished.result.finish, FinishReason::kStopToken);
}

TEST(EngineScores, AreThoseOfTheRowThatGaveTheToken) {
  Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options_of(2));
  GenerateRequest request = request_for(conversation(0, 1, false));
  request.scores = 3;
  request.sampling.temperature = 0.9F;
  request.sampling.seed = 5;
  std::vector<std::vector<TokenScores>> runs;
  for (const int draft_max : {0, 7}) {
    request.draft_max = draft_max;
    request.adapt_drafts = false;
    const auto stream = engine.submit(engine_request(request));
    std::vector<TokenScores>& scores = runs.emplace_back();
    for (;;) {
      ReplyStreamEvent event = stream->next();
      if (auto* tokens = std::get_if<ReplyTokens>(&event)) {
        for (EmittedToken& token : tokens->tokens) {
          ASSERT_TRUE(token.scores.has_value());
          scores.push_back(*token.scores);
        }
      } else if (std::holds_alternative<ReplyFinished>(event)) {
        break;
      }
    }
  }
  ASSERT_EQ(runs[0].size(), runs[1].size());
  for (size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(runs[0][i].chosen, runs[1][i].chosen) << i;
    ASSERT_EQ(runs[0][i].best.size(), 3U);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(runs[0][i].best[k].token, runs[1][i].best[k].token);
      EXPECT_EQ(runs[0][i].best[k].log_probability, runs[1][i].best[k].log_probability);
    }
    EXPECT_LE(runs[0][i].best[1].log_probability, runs[0][i].best[0].log_probability);
    EXPECT_LE(runs[0][i].chosen, runs[0][i].best[0].log_probability);
  }
}

}  // namespace
}  // namespace octet
