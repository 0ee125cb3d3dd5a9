#include "octet/serve/reply_form.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace octet::serve {
namespace {

double rate(int64_t count, double ms) {
  return ms > 0.0 ? static_cast<double>(count) * 1000.0 / ms : 0.0;
}

double each(int64_t count, double ms) {
  return count > 0 ? ms / static_cast<double>(count) : 0.0;
}

Json bytes_of(std::string_view text) {
  Json bytes = Json::array();
  for (const char c : text) {
    bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  }
  return bytes;
}

std::string spelling(const Tokenizer& tokenizer, TokenId token) {
  return token < tokenizer.vocabulary_size() ? std::string(tokenizer.bytes(token)) : std::string();
}

Json entry_of(const Tokenizer& tokenizer, TokenId token, float log_probability) {
  const std::string text = spelling(tokenizer, token);
  return {{"token", text}, {"logprob", log_probability}, {"bytes", bytes_of(text)}};
}

Json chat_scores(const Tokenizer& tokenizer, std::span<const EmittedToken> tokens) {
  Json content = Json::array();
  for (const EmittedToken& token : tokens) {
    Json entry = entry_of(tokenizer, token.token, token.scores->chosen);
    entry["top_logprobs"] = Json::array();
    for (const ScoredToken& best : token.scores->best) {
      entry["top_logprobs"].push_back(entry_of(tokenizer, best.token, best.log_probability));
    }
    content.push_back(std::move(entry));
  }
  Json scores = Json::object();
  scores["content"] = std::move(content);
  scores["refusal"] = nullptr;
  return scores;
}

Json completion_scores(
    const Tokenizer& tokenizer, std::span<const EmittedToken> tokens, TextOffset& offset
) {
  Json scores = Json::object();
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    scores[list] = Json::array();
  }
  for (const EmittedToken& token : tokens) {
    const std::string text = spelling(tokenizer, token.token);
    Json best = Json::object();
    for (const ScoredToken& scored : token.scores->best) {
      best[spelling(tokenizer, scored.token)] = scored.log_probability;
    }
    scores["tokens"].push_back(text);
    scores["token_logprobs"].push_back(token.scores->chosen);
    scores["top_logprobs"].push_back(std::move(best));
    scores["text_offset"].push_back(offset.characters());
    offset.advance(text);
  }
  return scores;
}

}  // namespace

std::string finish_reason_of(FinishReason reason, bool tool_calls) {
  switch (reason) {
    case FinishReason::kStopToken:
    case FinishReason::kStopString:
      return tool_calls ? "tool_calls" : "stop";
    case FinishReason::kLength:
    case FinishReason::kContext:
    case FinishReason::kDeadline:
      return "length";
    case FinishReason::kCancelled:
    case FinishReason::kFailed:  // told as an error, without a reason
    case FinishReason::kNone:
      return "stop";
  }
  return "stop";
}

Json usage_of(const std::vector<ChoiceText>& choices, int64_t choices_each) {
  int64_t prompt = 0;
  int64_t cached = 0;
  int64_t reply = 0;
  int64_t thinking = 0;
  int64_t accepted = 0;
  int64_t drafted = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    const ChoiceText& choice = choices[i];
    if (static_cast<int64_t>(i) % choices_each == 0) {  // a prompt counts once, whatever n
      prompt += choice.report.prompt_tokens;
      cached += choice.report.reused_tokens;
    }
    reply += choice.report.reply_tokens;
    thinking += choice.thinking_tokens;
    accepted += choice.report.acceptance.accepted;
    drafted += choice.report.acceptance.drafted;
  }
  return {
      {"prompt_tokens", prompt},
      {"completion_tokens", reply},
      {"total_tokens", prompt + reply},
      {"prompt_tokens_details", {{"cached_tokens", cached}, {"audio_tokens", 0}}},
      {"completion_tokens_details",
       {{"reasoning_tokens", thinking},
        {"audio_tokens", 0},
        {"accepted_prediction_tokens", accepted},
        {"rejected_prediction_tokens", drafted - accepted}}}};
}

Json timings_of(const ChoiceText& choice) {
  const ReplyReport& report = choice.report;
  const int64_t read = report.prompt_tokens - report.reused_tokens;
  const double prompt_ms = choice.times.prefill_ms;
  const double reply_ms = choice.times.decode_ms;
  Json timings = {
      {"cache_n", report.reused_tokens},
      {"prompt_n", read},
      {"prompt_ms", prompt_ms},
      {"prompt_per_token_ms", each(read, prompt_ms)},
      {"prompt_per_second", rate(read, prompt_ms)},
      {"predicted_n", report.reply_tokens},
      {"predicted_ms", reply_ms},
      {"predicted_per_token_ms", each(report.reply_tokens, reply_ms)},
      {"predicted_per_second", rate(report.reply_tokens, reply_ms)}};
  if (report.acceptance.drafted > 0) {
    timings["draft_n"] = report.acceptance.drafted;
    timings["draft_n_accepted"] = report.acceptance.accepted;
  }
  if (report.acceptance.forced > 0) {
    timings["forced_n"] = report.acceptance.forced;
  }
  timings["queue_ms"] = report.queue_ms;
  timings["first_token_ms"] = report.first_token_ms;
  timings["first_speech_ms"] = choice.first_speech_ms;
  timings["first_sentence_ms"] = choice.first_sentence_ms;
  return timings;
}

Json metrics_of(const std::vector<ChoiceText>& choices) {
  if (choices.size() != 1) {
    return nullptr;
  }
  const ReplyReport& report = choices.front().report;
  const AcceptanceStatistics& acceptance = report.acceptance;
  const std::vector<double>& gaps = report.between_tokens_ms;
  const double decode_ms = std::accumulate(gaps.begin(), gaps.end(), 0.0);
  // Of steps that drafted. Index: accepted drafts, the target's own token left out.
  std::vector<int64_t> histogram(static_cast<size_t>(acceptance.rows()) + 1, 0);
  Json by_draft_length = Json::object();
  for (size_t drafts = 1; drafts < acceptance.drafting.size(); ++drafts) {
    const auto& by_accepted = acceptance.drafting[drafts];
    if (std::ranges::all_of(by_accepted, [](int64_t steps) { return steps == 0; })) {
      continue;
    }
    const auto end = by_accepted.begin() + static_cast<ptrdiff_t>(drafts) + 1;
    by_draft_length[fmt::to_string(drafts)] = std::vector<int64_t>(by_accepted.begin(), end);
    for (size_t accepted = 0; accepted < histogram.size(); ++accepted) {
      histogram[accepted] += by_accepted[accepted];
    }
  }
  const bool drafted = acceptance.drafted > 0;
  Json speculative = {
      {"mean_acceptance_length", acceptance.tokens_per_drafting_step()},
      {"draft_acceptance_rate",
       drafted ? static_cast<double>(acceptance.accepted) / static_cast<double>(acceptance.drafted)
               : 0.0},
      {"acceptance_histogram", std::move(histogram)},
      {"acceptance_histogram_by_draft_length", std::move(by_draft_length)},
      {"num_spec_steps", acceptance.drafting_steps()},
      {"num_accepted_draft_tokens", acceptance.accepted},
      {"num_draft_tokens", acceptance.drafted},
      {"num_spec_tokens", acceptance.rows()},
      {"break_even_acceptance_length",
       report.break_even_length > 0.0 ? Json(report.break_even_length) : Json()}};
  return {
      {"time_to_first_token_ms", report.first_token_ms},
      {"generation_time_ms", decode_ms},
      {"queue_time_ms", report.queue_ms},
      {"mean_itl_ms", each(std::ssize(gaps), decode_ms)},
      {"tokens_per_second", rate(std::ssize(gaps), decode_ms)},
      {"speculative_decoding", drafted ? std::move(speculative) : Json()}};
}

void TextOffset::advance(std::string_view bytes) {
  for (const char c : decoder_.push(bytes)) {
    characters_ += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  }
}

Json scores_of(
    ReplyForm form,
    const Tokenizer& tokenizer,
    std::span<const EmittedToken> tokens,
    TextOffset& offset
) {
  if (tokens.empty()) {
    return nullptr;
  }
  return form == ReplyForm::kChat ? chat_scores(tokenizer, tokens)
                                  : completion_scores(tokenizer, tokens, offset);
}

Json step_of(const ReplyTokens& tokens) {
  const SequenceStep& step = tokens.step;
  return {
      {"drafted", step.drafted},
      {"accepted", step.accepted},
      {"published", step.published},
      {"draft_ms", tokens.times.draft_ms},
      {"verify_ms", tokens.times.forward_ms + tokens.times.verify_ms}};
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string event_of(const Json& json) {
  return "data: " + dump(json) + "\n\n";
}

std::string named_event(std::string_view name, const Json& json) {
  return fmt::format("event: {}\n{}", name, event_of(json));
}

}  // namespace octet::serve
