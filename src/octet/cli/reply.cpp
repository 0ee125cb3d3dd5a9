#include "octet/cli/reply.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <random>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/engine/grammar_constraint.h"
#include "octet/engine/thinking_budget.h"

namespace octet::cli {
namespace {

TokenBias parse_bias(const std::string& text) {
  const size_t equals = text.find('=');
  TokenBias bias;
  if (equals != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto token = std::from_chars(text.data(), text.data() + equals, bias.token);
    const auto value = std::from_chars(text.data() + equals + 1, end, bias.bias);
    if (token.ec == std::errc() && token.ptr == text.data() + equals && value.ec == std::errc() &&
        value.ptr == end) {
      return bias;
    }
  }
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format("--logit-bias {} is not of the form ID=BIAS, for example 42=-1.5", text)
  );
}

uint64_t fresh_seed() {
  std::random_device device;
  return device();  // 32 bits: short enough to type again
}

std::string reason_not_to_draft(const Pair& pair, const ReplyOptions& options) {
  const bool has_drafter = pair.drafter->max_drafts() > 0;
  if (!has_drafter && options.draft_max.value_or(0) > 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--draft-max asks for drafts and there is no drafter; add -md or leave it out"
    );
  }
  if (!has_drafter && options.compare_rounds > 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--compare measures drafting and there is no drafter; add -md or leave it out"
    );
  }
  if (has_drafter && options.compare_rounds > 0 && options.draft_max == 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--compare measures drafting and --draft-max 0 turns it off; leave one out"
    );
  }
  if (!has_drafter) {
    return "no drafter given (-md)";
  }
  return options.draft_max == 0 ? "turned off (--draft-max 0)" : "";
}

/// The ratio rule keeps the law of the text, not the text, so its drafted run is another reply.
void refuse_comparison_by_ratio(const ReplyOptions& options, const SamplingParams& sampling) {
  if (options.compare_rounds > 0 && options.rule == VerifyRule::kRatio && !sampling.greedy()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--compare measures one text plainly and drafted, and --verify-rule ratio writes another "
        "one above temperature 0; leave one out"
    );
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

EngineOptions engine_options(const Pair& pair, int64_t kept_texts) {
  EngineOptions options = pair.engine_options(1);
  options.slots = kept_texts;
  return options;
}

}  // namespace

SamplingParams resolve_sampling(const SamplingOptions& options, const Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata;
  SamplingParams sampling;
  const auto recommended = [&](const std::optional<float>& asked, const char* key, double fallback
                           ) {
    return asked.value_or(static_cast<float>(metadata.find_number(key).value_or(fallback)));
  };
  sampling.temperature = recommended(options.temperature, "general.sampling.temp", 0.0);
  sampling.top_k =
      options.top_k.value_or(metadata.find_integer("general.sampling.top_k").value_or(0));
  sampling.top_p = recommended(options.top_p, "general.sampling.top_p", 1.0);
  sampling.min_p = recommended(options.min_p, "general.sampling.min_p", 0.0);
  sampling.repetition_penalty =
      recommended(options.repetition_penalty, "general.sampling.penalty_repeat", 1.0);
  sampling.presence_penalty = options.presence_penalty;
  sampling.frequency_penalty = options.frequency_penalty;
  sampling.penalty_last_n = options.penalty_last_n;
  sampling.penalty_scope =
      options.penalise_prompt ? PenaltyScope::kPromptAndReply : PenaltyScope::kReply;
  for (const std::string& text : options.logit_bias) {
    sampling.logit_bias.push_back(parse_bias(text));
  }
  sampling.seed = options.seed ? *options.seed : fresh_seed();
  return sampling;
}

int64_t texts_at_a_time(const ReplyOptions& options, int64_t kept_texts) {
  return kept_texts + (options.compare_rounds > 0 ? 1 : 0);
}

std::string describe_sampling(const SamplingParams& sampling) {
  std::string text = "greedy";
  if (!sampling.greedy()) {
    text = fmt::format("temperature {:g}", sampling.temperature);
    if (sampling.top_k > 0) {
      text += fmt::format(", top-k {}", sampling.top_k);
    }
    if (sampling.top_p < 1.0F) {
      text += fmt::format(", top-p {:g}", sampling.top_p);
    }
    if (sampling.min_p > 0.0F) {
      text += fmt::format(", min-p {:g}", sampling.min_p);
    }
  }
  if (sampling.penalises()) {
    text += fmt::format(
        ", penalties: repeat {:g}, presence {:g}, frequency {:g}",
        sampling.repetition_penalty,
        sampling.presence_penalty,
        sampling.frequency_penalty
    );
    text += sampling.penalty_scope == PenaltyScope::kPromptAndReply ? " of prompt and reply" : "";
    if (sampling.penalty_last_n > 0) {
      text += fmt::format(" in the last {} tokens", sampling.penalty_last_n);
    }
  }
  for (const TokenBias& bias : sampling.logit_bias) {
    text += fmt::format(", bias {}={:g}", bias.token, bias.bias);
  }
  return sampling.greedy() ? text : text + fmt::format(", seed {}", sampling.seed);
}

ChatOptions chat_options(const ReplyOptions& options) {
  if (options.no_thinking && options.thinking_budget) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--thinking-budget and --no-think contradict each other; leave one out"
    );
  }
  ChatOptions chat;
  chat.thinking = !options.no_thinking;
  chat.thinking_token_budget = options.thinking_budget;
  chat.conversational_mode = options.conversational;
  return chat;
}

Replier::Replier(Pair& pair, const ReplyOptions& options, int64_t kept_texts)
    : pair_(pair),
      options_(options),
      engine_(*pair.target, *pair.drafter, pair.tokenizer, engine_options(pair, kept_texts)) {
  request_.sampling.seed = options.sampling.seed ? *options.sampling.seed : fresh_seed();
  apply_options();
}

void Replier::apply_options() {
  std::string reason = reason_not_to_draft(pair_, options_);
  SamplingOptions sampling = options_.sampling;
  sampling.seed = sampling.seed.value_or(request_.sampling.seed);
  request_.sampling = resolve_sampling(sampling, *pair_.target_checkpoint);
  refuse_comparison_by_ratio(options_, request_.sampling);
  request_.stop_strings = options_.stop_strings;
  request_.max_tokens = options_.max_tokens;
  request_.draft_max = options_.draft_max.value_or(kMaxDrafts);
  request_.adapt_drafts = options_.adapt_drafts;
  request_.rule = options_.rule;
  if (options_.draft_choice) {
    request_.draft_choices.rows = {*options_.draft_choice};
  }
  if (options_.ignore_end) {
    request_.stop_tokens = std::vector<TokenId>{};
  }
  undrafted_reason_ = std::move(reason);
}

EngineRequest Replier::engine_request(const ReplyRequest& asked) const {
  EngineRequest request;
  request.generate = request_;
  request.generate.prompt = asked.prompt;
  if (pair_.tokenizer->chat_tokens().channel_close != kNoToken) {
    request.thinking_budget =
        options_.no_thinking ? std::optional<int64_t>(0) : options_.thinking_budget;
  }
  if (asked.grammar != nullptr) {
    request.constraint = std::make_unique<GrammarConstraint>(asked.grammar);
  }
  return request;
}

Reply Replier::reply(ReplyRequest asked, TextStream* stream, const std::atomic<bool>* interrupted) {
  ReplyPrinter printer(
      pair_.tokenizer,
      {.tool_names = std::move(asked.tool_names),
       .stop_strings = options_.stop_strings,
       .thoughts = options_.thoughts},
      stream
  );
  printer.start(asked.prompt);
  const std::shared_ptr<ReplyStream> events = engine_.submit(engine_request(asked));
  OCTET_CHECK(events != nullptr);  // one reply at a time: the queue is never full
  std::optional<GenerateResult> result;
  while (!result) {
    ReplyStreamEvent event = events->next();
    // Every step brings an event, so this is looked at once a step.
    if (interrupted != nullptr && interrupted->load(std::memory_order_relaxed)) {
      events->cancel();
    }
    if (const auto* step = std::get_if<ReplyTokens>(&event)) {
      for (const EmittedToken& token : step->tokens) {
        printer.push(token);
      }
    } else if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      result = std::move(finished->result);
    } else if (const auto* failed = std::get_if<ReplyFailed>(&event)) {
      printer.finish();
      throw Error(failed->error);
    }
  }
  Reply reply = printer.finish();
  reply.result = std::move(*result);
  statistics_.add(reply.result);
  if (options_.compare_rounds > 0 && reply.result.finish != FinishReason::kCancelled) {
    compare(asked, interrupted);
  }
  return reply;
}

GenerateResult Replier::generate_alone(
    const ReplyRequest& asked, bool drafted, const std::atomic<bool>* interrupted
) {
  EngineRequest request = engine_request(asked);
  std::unique_ptr<TokenConstraint> constraint = std::move(request.constraint);
  if (request.thinking_budget) {
    auto budget = std::make_unique<ThinkingBudget>(
        *pair_.tokenizer,
        ThinkingBudget::Options{request.thinking_budget, request.thinking_close},
        std::move(constraint)
    );
    budget->start(asked.prompt);
    constraint = std::move(budget);
  }
  request.generate.constraint = constraint.get();
  request.generate.cancelled = interrupted;
  if (!drafted) {
    request.generate.draft_max = 0;
  }
  trial_->reset();
  return trial_->generate(request.generate);
}

void Replier::compare(const ReplyRequest& asked, const std::atomic<bool>* interrupted) {
  if (trial_ == nullptr) {
    trial_ = std::make_unique<Generator>(
        *pair_.target, *pair_.drafter, *pair_.tokenizer, pair_.generator_options()
    );
  }
  std::vector<double> plain_ms;
  std::vector<double> drafted_ms;
  GenerateResult plain_result;
  GenerateResult drafted_result;
  for (int round = 0; round < options_.compare_rounds; ++round) {
    plain_result = generate_alone(asked, false, interrupted);
    plain_ms.push_back(plain_result.times.decode_ms);
    drafted_result = generate_alone(asked, true, interrupted);
    drafted_ms.push_back(drafted_result.times.decode_ms);
    for (const GenerateResult* result : {&plain_result, &drafted_result}) {
      if (result->finish == FinishReason::kCancelled) {
        return;  // half a comparison is none
      }
    }
  }
  SpeedComparison& comparison = statistics_.comparison;
  comparison.rounds = options_.compare_rounds;
  comparison.tokens += drafted_result.acceptance.published;
  comparison.plain_ms += median(plain_ms);
  comparison.drafted_ms += median(drafted_ms);
  comparison.plain_steps += plain_result.acceptance.steps;
  comparison.drafted_steps += drafted_result.acceptance.steps;
  comparison.identical = comparison.identical && plain_result.tokens == drafted_result.tokens;
}

MemoryFigures Replier::memory() const {
  MemoryFigures figures = memory_figures(pair_);
  const EngineStatus status = engine_.status();
  figures.kv_bytes = status.cache_bytes - status.draft_context_bytes;
  figures.draft_context_bytes = status.draft_context_bytes;
  if (trial_ != nullptr) {
    figures.kv_bytes += trial_->kv_bytes();
    figures.draft_context_bytes += trial_->draft_context_bytes();
  }
  return figures;
}

void print_summary(const Pair& pair, const Replier& replier, const TextStream& stream) {
  std::fflush(stdout);
  const std::string legend = stream.legend();
  if (!legend.empty()) {
    fmt::print(stderr, "\n{}\n", legend);
  }
  const SummaryNotes notes = {
      .sampling = describe_sampling(replier.sampling()),
      .undrafted_reason = replier.undrafted_reason(),
      .embedding_scale = pair.embedding_scale,
      .draft_head = pair.draft_head,
      .backend = pair.machine,
      .load_seconds = pair.load_seconds,
  };
  fmt::print(stderr, "\n{}", summary_text(replier.statistics(), replier.memory(), notes));
}

}  // namespace octet::cli
