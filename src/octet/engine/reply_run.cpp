#include "octet/engine/reply_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"

namespace octet {
namespace {

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

SamplingParams sampling_of(const GenerateRequest& request, const Tokenizer& tokenizer) {
  SamplingParams params = request.sampling;
  for (const TokenId token : tokenizer.suppressed_ids()) {
    params.logit_bias.push_back({token, kBanBias});
  }
  return params;
}

std::shared_ptr<const StopStrings> stop_strings_of(const GenerateRequest& request) {
  return request.stop_strings.empty() ? nullptr
                                      : std::make_shared<const StopStrings>(request.stop_strings);
}

}  // namespace

int64_t checked_context_length(int64_t asked, const TargetShape& shape) {
  const int64_t limit = shape.context_length;
  const int64_t context = asked == 0 ? limit : asked;
  if (context < 2 || context > limit) {
    refuse(fmt::format(
        "the context length is {}, expected 2 to {}, the most that this model was made for",
        context,
        limit
    ));
  }
  return context;
}

void check_request(
    const GenerateRequest& request, const ReplyContext& context, int64_t context_length
) {
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
  const int64_t vocabulary = context.target.shape().vocabulary;
  for (const TokenId token : request.prompt) {
    if (token < 0 || token >= vocabulary) {
      refuse(fmt::format("the prompt holds token {}, expected ids in [0, {})", token, vocabulary));
    }
  }
  if (request.max_tokens < 1) {
    refuse(fmt::format("max_tokens is {}, expected 1 or more", request.max_tokens));
  }
  if (request.min_tokens < 0 || request.min_tokens > request.max_tokens) {
    refuse(fmt::format(
        "min_tokens is {}, expected 0 to {}, which is max_tokens",
        request.min_tokens,
        request.max_tokens
    ));
  }
  if (request.draft_max < 0) {
    refuse(fmt::format("draft_max is {}, expected 0 or more", request.draft_max));
  }
  sampling_of(request, context.tokenizer).validate(vocabulary);
  stop_strings_of(request);
}

ReplyRun::ReplyRun(
    const ReplyContext& context, const GenerateRequest& request, Slot& slot, int64_t kept
)
    : context_(context),
      request_(request),
      text_(
          context.tokenizer, stop_strings_of(request), {request.min_tokens, request.stop_in_speech}
      ) {
  result_.prompt_tokens = std::ssize(request.prompt);
  result_.reused_tokens = kept;
  text_.start(request.prompt);
  enter(slot, kept);
}

ReplyRun::~ReplyRun() {
  if (slot_ != nullptr) {
    leave();
  }
}

void ReplyRun::suspend() {
  OCTET_CHECK(slot_ != nullptr && !finished());
  leave();
}

void ReplyRun::resume(Slot& slot, int64_t kept) {
  OCTET_CHECK(slot_ == nullptr && !finished());
  enter(slot, kept);
}

std::vector<TokenId> ReplyRun::text() const {
  std::vector<TokenId> text = request_.prompt;
  text.insert(text.end(), result_.tokens.begin(), result_.tokens.end());
  return text;
}

void ReplyRun::enter(Slot& slot, int64_t kept) {
  OCTET_CHECK(slot.sequence.cache->length() == kept);
  slot_ = &slot;
  const ReplyContext& context = context_;
  const GenerateRequest& request = request_;
  Sequence& sequence = slot.sequence;
  sequence.sampler = std::make_shared<const Sampler>(
      sampling_of(request, context.tokenizer), context.target.shape().vocabulary
  );
  sequence.tokens = text();
  sequence.prompt_length = std::ssize(request.prompt);
  sequence.penalties = PenaltyWindow(sequence.sampler->params(), request.prompt);
  for (const TokenId token : result_.tokens) {
    sequence.penalties.push(token);
  }
  sequence.rule = request.rule;
  sequence.draft_max = request.draft_max;
  sequence.feed_drafter = request.draft_max > 0 || request.keep_draft_context;
  sequence.planned_drafts = -1;
  const int most_drafts = std::min(request.draft_max, context.drafter.max_drafts());
  // Under the ratio rule text depends on the length of blocks, which must not depend on the clock.
  const bool by_ratio = request.rule == VerifyRule::kRatio && !sequence.sampler->params().greedy();
  sequence.policy = request.adapt_drafts && !by_ratio
                        ? &slot.policy(BlockPolicy(context.costs, most_drafts), context.habits)
                        : nullptr;
  sequence.draft_choices = request.draft_choices;
  sequence.scores = request.scores;
  sequence.marks = result_.tokens.empty() ? request.marks : std::vector<int64_t>();
  sequence.stop_tokens = request.stop_tokens.value_or(
      std::vector<TokenId>(context.tokenizer.stop_ids().begin(), context.tokenizer.stop_ids().end())
  );
  sequence.constraint = request.constraint;
  if (request.min_tokens > 0 && !minimum_) {
    minimum_.emplace(request.min_tokens, sequence.stop_tokens, request.constraint);
  }
  if (minimum_) {
    sequence.constraint = &*minimum_;
  }
  sequence.max_tokens = request.max_tokens;
  sequence.stop_watch = &text_;
  sequence.cancelled = request.cancelled;
  sequence.finish = FinishReason::kNone;
}

void ReplyRun::leave() {
  Sequence& sequence = std::exchange(slot_, nullptr)->sequence;
  sequence.stop_watch = nullptr;
  sequence.cancelled = nullptr;
  sequence.constraint = nullptr;
  if (sequence.policy != nullptr &&
      sequence.policy->max_drafts() == context_.drafter.max_drafts()) {
    context_.habits.emplace(*sequence.policy);  // one that was held back has less to teach
  }
  sequence.policy = nullptr;
  sequence.marks.clear();
}

std::vector<EmittedToken> ReplyRun::take(const SequenceStep& step, const StepTimes& times) {
  Sequence& sequence = slot_->sequence;
  if (sequence.constraint != nullptr && sequence.constraint->failure() != nullptr) {
    // Not for want of memory that others may give back: the request itself asks for too much.
    throw Error(ErrorKind::kUnsupported, sequence.constraint->failure()->what());
  }
  std::vector<EmittedToken> emitted;
  std::vector<std::string> pieces = text_.take_pieces();
  OCTET_CHECK(std::ssize(pieces) == step.published);
  const auto first = sequence.length() - step.published;
  for (int i = 0; i < step.published; ++i) {
    const auto at = static_cast<size_t>(i);
    EmittedToken token;
    token.token = sequence.tokens[static_cast<size_t>(first) + at];
    token.drafted = i < step.published_drafts();
    token.text = std::move(pieces[at]);
    if (sequence.scores >= 0) {
      token.scores = std::move(sequence.published_scores[at]);
    }
    emitted.push_back(std::move(token));
  }
  if (sequence.finish != FinishReason::kNone && !emitted.empty()) {
    emitted.back().text += text_.finish();
  }
  for (const EmittedToken& token : emitted) {
    result_.tokens.push_back(token.token);
    result_.drafted.push_back(token.drafted);
    result_.text += token.text;
  }
  result_.acceptance.add(step);
  if (step.prompt) {
    result_.times.prefill_ms += sum(times);
  } else {
    result_.times.decode_ms += sum(times);
    accumulate(result_.times.steps, times);
  }
  result_.finish = sequence.finish;
  return emitted;
}

std::string ReplyRun::end(FinishReason reason) {
  OCTET_CHECK(!finished());
  if (slot_ != nullptr) {
    slot_->sequence.finish = reason;
  }
  result_.finish = reason;
  std::string rest = text_.finish();
  result_.text += rest;
  return rest;
}

}  // namespace octet
