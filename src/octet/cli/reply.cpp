#include "octet/cli/reply.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/text/reply_parser.h"

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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Prints tokens as they come: thoughts and speech apart, or the text as it is when stop strings
/// must be held back.
class TokenPrinter {
 public:
  TokenPrinter(const Pair& pair, const ReplyOptions& options, Reply& reply, TextStream* stream)
      : parser_(pair.tokenizer),
        hide_thinking_(options.hide_thinking),
        raw_(!options.stop_strings.empty()),
        reply_(reply),
        stream_(stream) {}

  void push(const EmittedToken& token) {
    origin_ = token.drafted ? TextStream::Origin::kDraft : TextStream::Origin::kTarget;
    if (raw_) {
      print(token.text, ReplyPart::kSpeech);
      return;
    }
    events_.clear();
    parser_.push(token.token, events_);
    print_events();
  }

  void finish() {
    if (!raw_) {
      events_.clear();
      parser_.finish(events_);
      print_events();
    }
    if (stream_ != nullptr) {
      stream_->end();
    }
  }

 private:
  void print_events() {
    for (const ReplyEvent& event : events_) {
      if (event.part == ReplyPart::kToolCall) {
        print_tool_call(event);
      } else {
        print(event.text, event.part);
      }
      if (event.complete) {
        end_part(event.part);
      }
    }
  }

  void print_tool_call(const ReplyEvent& event) {
    if (!in_tool_call_) {
      in_tool_call_ = true;
      reply_.tool_calls.emplace_back();
      show("\n", TextStream::Part::kSpeech);
    }
    reply_.tool_calls.back() += event.text;
    show(event.text, TextStream::Part::kSpeech);
  }

  void end_part(ReplyPart part) {
    in_tool_call_ = false;
    if (part == ReplyPart::kThinking && !hide_thinking_) {
      show("\n", TextStream::Part::kSpeech);
    }
  }

  void print(const std::string& text, ReplyPart part) {
    const bool thinking = part == ReplyPart::kThinking;
    (thinking ? reply_.thinking : reply_.speech) += text;
    if (!thinking || !hide_thinking_) {
      show(text, thinking ? TextStream::Part::kThinking : TextStream::Part::kSpeech);
    }
  }

  void show(std::string_view text, TextStream::Part part) {
    if (stream_ != nullptr) {
      stream_->write(text, origin_, part);
    }
  }

  ReplyParser parser_;
  bool hide_thinking_;
  bool raw_;
  bool in_tool_call_ = false;
  Reply& reply_;
  TextStream* stream_;
  TextStream::Origin origin_ = TextStream::Origin::kTarget;
  std::vector<ReplyEvent> events_;
};

}  // namespace

SamplingParams resolve_sampling(const SamplingOptions& options, const Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata;
  SamplingParams sampling;
  sampling.temperature = options.temperature.value_or(
      static_cast<float>(metadata.find_number("general.sampling.temp").value_or(0.0))
  );
  sampling.top_k =
      options.top_k.value_or(metadata.find_integer("general.sampling.top_k").value_or(0));
  sampling.top_p = options.top_p.value_or(
      static_cast<float>(metadata.find_number("general.sampling.top_p").value_or(1.0))
  );
  sampling.min_p = options.min_p.value_or(0.0F);
  sampling.repetition_penalty = options.repetition_penalty;
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

Replier::Replier(Pair& pair, const ReplyOptions& options)
    : pair_(pair),
      options_(options),
      generator_(*pair.target, *pair.drafter, *pair.tokenizer, pair.generator_options()),
      undrafted_reason_(reason_not_to_draft(pair, options)) {
  request_.sampling = resolve_sampling(options.sampling, *pair.target_checkpoint);
  request_.stop_strings = options.stop_strings;
  request_.max_tokens = options.max_tokens;
  request_.draft_max = options.draft_max.value_or(kMaxDrafts);
  request_.adapt_drafts = options.adapt_drafts;
  request_.rule = options.rule;
  if (options.draft_choice) {
    request_.draft_choices.rows = {*options.draft_choice};
  }
  if (options.ignore_end) {
    request_.stop_tokens = std::vector<TokenId>{};
  }
}

Reply Replier::reply(
    std::vector<TokenId> prompt, TextStream* stream, const std::atomic<bool>* cancelled
) {
  GenerateRequest request = request_;
  request.prompt = std::move(prompt);
  request.cancelled = cancelled;
  Reply reply;
  TokenPrinter printer(pair_, options_, reply, stream);
  reply.result = generator_.generate(request, [&](const GenerateStep& step) {
    for (const EmittedToken& token : step.tokens) {
      printer.push(token);
    }
  });
  printer.finish();
  statistics_.add(reply.result);
  if (options_.compare_rounds > 0 && reply.result.finish != FinishReason::kCancelled) {
    compare(request);
  }
  return reply;
}

void Replier::compare(const GenerateRequest& request) {
  GenerateRequest plain = request;
  plain.draft_max = 0;
  std::vector<double> plain_ms;
  std::vector<double> drafted_ms;
  GenerateResult plain_result;
  GenerateResult drafted_result;
  for (int round = 0; round < options_.compare_rounds; ++round) {
    generator_.reset();
    plain_result = generator_.generate(plain);
    plain_ms.push_back(plain_result.times.decode_ms);
    generator_.reset();
    drafted_result = generator_.generate(request);
    drafted_ms.push_back(drafted_result.times.decode_ms);
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
  figures.kv_bytes = generator_.kv_bytes();
  figures.draft_context_bytes = generator_.draft_context_bytes();
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
      .backend = std::string(pair.ops->name()),
      .load_seconds = pair.load_seconds,
  };
  fmt::print(stderr, "\n{}", summary_text(replier.statistics(), replier.memory(), notes));
}

}  // namespace octet::cli
