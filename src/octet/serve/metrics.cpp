#include "octet/serve/metrics.h"

#include <array>
#include <map>
#include <mutex>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <vector>

#include <fmt/format.h>

namespace octet::serve {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

Counter& counter(Registry& registry, const std::string& name, const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

Gauge& gauge(Registry& registry, const std::string& name, const std::string& help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

Histogram& histogram(
    Registry& registry,
    const std::string& name,
    const std::string& help,
    const Histogram::BucketBoundaries& bounds
) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, bounds);
}

const Histogram::BucketBoundaries kSeconds = {
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 2.0, 5.0, 10., 20.0, 60.0};
const Histogram::BucketBoundaries kTokenSeconds = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2, 0.5, 1.0};

constexpr std::array kReasons = {
    FinishReason::kStopToken,
    FinishReason::kStopString,
    FinishReason::kLength,
    FinishReason::kContext,
    FinishReason::kCancelled,
    FinishReason::kDeadline,
    FinishReason::kFailed};

}  // namespace

struct Metrics::Families {
  Registry registry;
  std::vector<Counter*> accepted_per_position;
  std::map<FinishReason, Counter*> finished;
  std::mutex mutex;  // of what follows
  prometheus::Family<Counter>* responses = nullptr;

  Counter& drafts = counter(
      registry, "octet:spec_decode_num_drafts_total", "Steps of a sequence that verified drafts"
  );
  Counter& draft_tokens =
      counter(registry, "octet:spec_decode_num_draft_tokens_total", "Drafts that were verified");
  Counter& accepted_tokens = counter(
      registry, "octet:spec_decode_num_accepted_tokens_total", "Drafts that were published"
  );
  Counter& forced_tokens =
      counter(registry, "octet:forced_tokens_total", "Tokens that a grammar left no choice about");
  Counter& prompt_tokens = counter(registry, "octet:prompt_tokens_total", "Tokens of prompts");
  Counter& generation_tokens =
      counter(registry, "octet:generation_tokens_total", "Tokens that were published");
  Counter& prefix_queries = counter(
      registry, "octet:prefix_cache_queries_total", "Prompt tokens looked up among kept texts"
  );
  Counter& prefix_hits =
      counter(registry, "octet:prefix_cache_hits_total", "Prompt tokens found among kept texts");
  Counter& steps = counter(registry, "octet:steps_total", "Steps of the engine");
  Counter& draft_seconds = counter(registry, "octet:draft_seconds_total", "Time spent drafting");
  Counter& forward_seconds =
      counter(registry, "octet:forward_seconds_total", "Time spent in the target");
  Gauge& running = gauge(registry, "octet:num_requests_running", "Replies in the making");
  Gauge& waiting = gauge(registry, "octet:num_requests_waiting", "Requests in the queue");
  Gauge& cache_bytes =
      gauge(registry, "octet:kv_cache_bytes", "Keys, values and draft contexts of all kept texts");
  Gauge& cache_usage = gauge(
      registry, "octet:kv_cache_usage_ratio", "octet:kv_cache_bytes over its ceiling; 0 without one"
  );
  Gauge& kept_texts = gauge(registry, "octet:kept_texts", "Texts that a prompt may continue");
  Gauge& evictions =
      gauge(registry, "octet:kept_texts_evicted", "Texts dropped for memory or room");
  Gauge& draft_length =
      gauge(registry, "octet:draft_length", "Drafts a sequence verified in the last step");
  Gauge& break_even = gauge(
      registry,
      "octet:break_even_acceptance_length",
      "Tokens a drafted step must bring to be worth its time, one sequence, a full block"
  );
  Gauge& connections = gauge(registry, "octet:connections", "Open connections");
  Histogram& first_token = histogram(
      registry, "octet:time_to_first_token_seconds", "Submit to the first token", kSeconds
  );
  Histogram& between_tokens = histogram(
      registry,
      "octet:inter_token_latency_seconds",
      "Between tokens; those of one step share its time",
      kTokenSeconds
  );
  Histogram& whole = histogram(
      registry, "octet:e2e_request_latency_seconds", "Submit to the last token", kSeconds
  );
  Histogram& queued = histogram(
      registry,
      "octet:request_queue_time_seconds",
      "Submit to the start of the prompt, or to the end of what never started",
      kSeconds
  );
  Histogram& acceptance = histogram(
      registry,
      "octet:request_acceptance_length",
      "Mean acceptance length of drafted replies",
      {1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0}
  );
};

Metrics::Metrics(int max_drafts) : families_(std::make_unique<Families>()) {
  Registry& registry = families_->registry;
  auto& positions = prometheus::BuildCounter()
                        .Name("octet:spec_decode_num_accepted_tokens_per_pos_total")
                        .Help("Drafts that were published, by place in their block from 0")
                        .Register(registry);
  for (int k = 0; k < max_drafts; ++k) {
    families_->accepted_per_position.push_back(&positions.Add({{"position", fmt::to_string(k)}}));
  }
  auto& finished = prometheus::BuildCounter()
                       .Name("octet:request_success_total")
                       .Help("Replies that ended, by reason")
                       .Register(registry);
  for (const FinishReason reason : kReasons) {
    families_->finished[reason] =
        &finished.Add({{"finished_reason", std::string(finish_reason_name(reason))}});
  }
  families_->responses = &prometheus::BuildCounter()
                              .Name("octet:http_responses_total")
                              .Help("Answers by HTTP status")
                              .Register(registry);
  families_->responses->Add({{"code", "200"}});
}

Metrics::~Metrics() = default;

void Metrics::on_step(const EngineStep& step) {
  Families& own = *families_;
  own.steps.Increment();
  own.generation_tokens.Increment(static_cast<double>(step.tokens));
  own.draft_seconds.Increment(step.times.draft_ms / 1000.0);
  own.forward_seconds.Increment(step.times.forward_ms / 1000.0);
  int64_t drafted = 0;
  int64_t decoding = 0;
  for (const SequenceStep& sequence : step.sequences) {
    if (sequence.prompt) {
      continue;
    }
    ++decoding;
    const int guessed = sequence.drafted - sequence.forced;  // what is certain is no draft
    drafted += guessed;
    if (sequence.forced > 0) {
      own.forced_tokens.Increment(sequence.published_drafts());
    }
    if (guessed == 0) {
      continue;
    }
    own.drafts.Increment();
    own.draft_tokens.Increment(guessed);
    own.accepted_tokens.Increment(sequence.published_drafts());
    const auto positions = std::ssize(own.accepted_per_position);
    for (int64_t k = 0; k < sequence.published_drafts() && k < positions; ++k) {
      own.accepted_per_position[static_cast<size_t>(k)]->Increment();
    }
  }
  if (decoding > 0) {
    own.draft_length.Set(static_cast<double>(drafted) / static_cast<double>(decoding));
  }
}

void Metrics::on_reply(const ReplyReport& report) {
  Families& own = *families_;
  if (report.started) {
    own.prompt_tokens.Increment(static_cast<double>(report.prompt_tokens));
    own.prefix_queries.Increment(static_cast<double>(report.prompt_tokens));
    own.prefix_hits.Increment(static_cast<double>(report.reused_tokens));
  }
  if (const auto reason = own.finished.find(report.finish); reason != own.finished.end()) {
    reason->second->Increment();
  }
  own.queued.Observe(report.queue_ms / 1000.0);
  own.whole.Observe(report.total_ms / 1000.0);
  if (report.first_token_ms > 0.0) {
    own.first_token.Observe(report.first_token_ms / 1000.0);
  }
  for (const double ms : report.between_tokens_ms) {
    own.between_tokens.Observe(ms / 1000.0);
  }
  if (report.acceptance.drafted > 0) {
    own.acceptance.Observe(report.acceptance.tokens_per_drafting_step());
  }
}

void Metrics::on_response(int status) {
  const std::lock_guard lock(families_->mutex);
  families_->responses->Add({{"code", fmt::to_string(status)}}).Increment();
}

std::string Metrics::text(const EngineStatus& status, int64_t connections) {
  Families& own = *families_;
  own.running.Set(static_cast<double>(status.running));
  own.waiting.Set(static_cast<double>(status.waiting));
  own.cache_bytes.Set(static_cast<double>(status.cache_bytes));
  own.cache_usage.Set(
      status.cache_bytes_limit > 0
          ? static_cast<double>(status.cache_bytes) / static_cast<double>(status.cache_bytes_limit)
          : 0.0
  );
  own.kept_texts.Set(static_cast<double>(status.slots_idle));
  own.evictions.Set(static_cast<double>(status.evictions));
  own.break_even.Set(status.break_even_length());
  own.connections.Set(static_cast<double>(connections));
  return prometheus::TextSerializer().Serialize(own.registry.Collect());
}

}  // namespace octet::serve
