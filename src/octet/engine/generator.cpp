#include "octet/engine/generator.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/engine/reply_text.h"

namespace octet {
namespace {

int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

[[noreturn]] void refuse(std::string message) {
  throw Error(ErrorKind::kInvalidArgument, std::move(message));
}

double sum(const StepTimes& times) {
  return times.draft_ms + times.forward_ms + times.verify_ms + times.commit_ms;
}

void accumulate(StepTimes& to, const StepTimes& from) {
  to.draft_ms += from.draft_ms;
  to.forward_ms += from.forward_ms;
  to.verify_ms += from.verify_ms;
  to.commit_ms += from.commit_ms;
}

}  // namespace

struct Generator::State {
  TargetModel& target;
  Drafter& drafter;
  const Tokenizer& tokenizer;
  Cycle cycle;
  int64_t context_length;
  Sequence sequence;
  std::optional<BlockPolicy>
      policy;             // lives as long as the conversation: replies resemble each other
  int policy_drafts = 0;  // the most drafts that it was made for

  void check(const GenerateRequest& request) const;
  SamplingParams sampling(const GenerateRequest& request) const;
  int64_t reuse(std::span<const TokenId> prompt);
  void forget();
  void prepare(const GenerateRequest& request, ReplyText& text);
  void run(ReplyText& text, OnStep on_step, GenerateResult& result);
};

Generator::Generator(
    TargetModel& target, Drafter& drafter, const Tokenizer& tokenizer, GeneratorOptions options
) {
  const int64_t limit = target.shape().context_length;
  const int64_t context = options.context_length == 0 ? limit : options.context_length;
  if (context < 2 || context > limit) {
    refuse(fmt::format(
        "the context length is {}, expected 2 to {}, the most that this model was made for",
        context,
        limit
    ));
  }
  state_ = std::make_unique<State>(State{
      target, drafter, tokenizer, Cycle(target, drafter), context, Sequence(), std::nullopt, 0});
  state_->sequence.cache = target.new_cache(context, options.kv_type);
  state_->sequence.draft_state = drafter.new_state(context);
}

Generator::~Generator() = default;

void Generator::State::check(const GenerateRequest& request) const {
  const auto length = std::ssize(request.prompt);
  if (length == 0) {
    refuse("the prompt is empty, expected at least one token");
  }
  if (length >= context_length) {
    refuse(fmt::format(
        "the prompt has {} tokens and the context {}: shorten the prompt or raise the context "
        "length",
        length,
        context_length
    ));
  }
  const int64_t vocabulary = target.shape().vocabulary;
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= vocabulary) {
      refuse(fmt::format("the prompt holds token {}, expected ids in [0, {})", token, vocabulary));
    }
  }
  if (request.max_tokens < 1) {
    refuse(fmt::format("max_tokens is {}, expected 1 or more", request.max_tokens));
  }
  if (request.draft_max < 0) {
    refuse(fmt::format("draft_max is {}, expected 0 or more", request.draft_max));
  }
}

SamplingParams Generator::State::sampling(const GenerateRequest& request) const {
  SamplingParams params = request.sampling;
  for (const TokenId token : tokenizer.suppressed_ids()) {
    params.logit_bias.push_back({token, kBanBias});
  }
  return params;
}

/// Cuts the caches to what the last text and `prompt` share; returns how many positions stay.
int64_t Generator::State::reuse(std::span<const TokenId> prompt) {
  // At least one token must be processed to get logits.
  const int64_t shared = std::min(
      {common_prefix(sequence.tokens, prompt), std::ssize(prompt) - 1, sequence.cache->length()}
  );
  const int64_t kept = sequence.cache->can_truncate(shared) ? shared : 0;  // a ring forgets
  sequence.cache->truncate(kept);
  drafter.truncate(*sequence.draft_state, kept);
  return kept;
}

void Generator::State::forget() {
  sequence.tokens.clear();
  sequence.cache->truncate(0);
  drafter.truncate(*sequence.draft_state, 0);
}

void Generator::State::prepare(const GenerateRequest& request, ReplyText& text) {
  sequence.tokens = request.prompt;
  sequence.prompt_length = std::ssize(request.prompt);
  sequence.penalties = PenaltyWindow(sequence.sampler->params(), request.prompt);
  sequence.rule = request.rule;
  sequence.draft_max = request.draft_max;
  sequence.feed_drafter = request.draft_max > 0;
  const int most_drafts = std::min(request.draft_max, drafter.max_drafts());
  if (!policy || policy_drafts != most_drafts) {
    policy.emplace(cycle.costs(), most_drafts);
    policy_drafts = most_drafts;
  }
  sequence.policy = request.adapt_drafts ? &*policy : nullptr;
  sequence.draft_choices = request.draft_choices;
  sequence.stop_tokens = request.stop_tokens.value_or(
      std::vector<TokenId>(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end())
  );
  sequence.max_tokens = request.max_tokens;
  sequence.context_length = context_length;
  sequence.stop_watch = &text;
  sequence.cancelled = request.cancelled;
  sequence.finish = FinishReason::kNone;
}

GenerateResult Generator::generate(const GenerateRequest& request, OnStep on_step) {
  State& state = *state_;
  Sequence& sequence = state.sequence;
  state.check(request);
  ReplyText text(
      state.tokenizer,
      request.stop_strings.empty() ? nullptr
                                   : std::make_shared<const StopStrings>(request.stop_strings)
  );
  sequence.sampler =
      std::make_shared<const Sampler>(state.sampling(request), state.target.shape().vocabulary);

  GenerateResult result;
  result.prompt_tokens = std::ssize(request.prompt);
  result.reused_tokens = state.reuse(request.prompt);
  state.prepare(request, text);

  try {
    state.run(text, on_step, result);
  } catch (...) {
    state.forget();  // the caches may stand anywhere
    throw;
  }
  sequence.stop_watch = nullptr;
  sequence.cancelled = nullptr;
  result.finish = sequence.finish;
  return result;
}

void Generator::State::run(ReplyText& text, OnStep on_step, GenerateResult& result) {
  std::vector<Sequence*> batch = {&sequence};
  while (sequence.finish == FinishReason::kNone) {
    const StepReport report = cycle.step(batch);
    const SequenceStep& step = report.sequences.front();
    std::vector<EmittedToken> emitted;
    std::vector<std::string> pieces = text.take_pieces();
    OCTET_CHECK(std::ssize(pieces) == step.published);
    const auto first = sequence.length() - step.published;
    for (int i = 0; i < step.published; ++i) {
      emitted.push_back(
          {sequence.tokens[static_cast<size_t>(first + i)],
           i < step.published_drafts(),
           std::move(pieces[static_cast<size_t>(i)])}
      );
    }
    if (sequence.finish != FinishReason::kNone && !emitted.empty()) {
      emitted.back().text += text.finish();
    }
    for (const EmittedToken& token : emitted) {
      result.tokens.push_back(token.token);
      result.drafted.push_back(token.drafted);
      result.text += token.text;
    }
    result.acceptance.add(step);
    if (step.prompt) {
      result.times.prefill_ms += sum(report.times);
    } else {
      result.times.decode_ms += sum(report.times);
      accumulate(result.times.steps, report.times);
    }
    on_step({emitted, step, report.times});
  }
}

GenerateResult Generator::generate(const GenerateRequest& request) {
  return generate(request, [](const GenerateStep& /*step*/) {});
}

void Generator::reset() {
  state_->forget();
}

int64_t Generator::context_length() const {
  return state_->context_length;
}

int64_t Generator::kv_bytes() const {
  return state_->sequence.cache->bytes();
}

int64_t Generator::draft_context_bytes() const {
  return state_->sequence.draft_state->bytes();
}

double GenerateResult::tokens_per_second() const {
  return times.decode_ms > 0.0
             ? static_cast<double>(acceptance.published) * 1000.0 / times.decode_ms
             : 0.0;
}

}  // namespace octet
