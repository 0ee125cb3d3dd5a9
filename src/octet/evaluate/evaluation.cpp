#include "octet/evaluate/evaluation.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "octet/base/check.h"
#include "octet/evaluate/digest.h"
#include "octet/evaluate/hold_conversation.h"

namespace octet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWarmUpTokens = 16;  // a few drafted blocks

uint64_t digest_of(std::span<const TokenId> tokens) {
  Digest digest;
  for (const TokenId token : tokens) {
    digest.add(static_cast<uint64_t>(token));
  }
  return digest.value();
}

ConversationSettings settings_of(
    const EvalRequest& request, const EvalArmSettings& arm, int64_t index
) {
  ConversationSettings settings;
  settings.sampling = request.sampling;
  settings.sampling.seed += static_cast<uint64_t>(index);
  settings.thinking = request.thinking;
  settings.max_tokens = request.max_tokens;
  settings.max_turns = request.max_turns;
  settings.draft_max = arm.draft_max;
  settings.adapt_drafts = arm.adaptive;
  settings.ignore_end = request.ignore_end;
  return settings;
}

/// The first passes read weights and touch scratch memory for the first time: no arm's figures pay
/// for that. What is said is forgotten, and a failure shows again where replies are recorded.
void warm_up(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const EvalRequest& request
) {
  SuitePrompt greeting;
  greeting.turns = {"Hello"};
  for (const EvalArmSettings& arm : request.arms) {
    std::vector<ConversationTask> tasks;
    for (int64_t i = 0; i < request.concurrency; ++i) {
      ConversationSettings settings = settings_of(request, arm, i);
      settings.max_tokens = std::min(settings.max_tokens, kWarmUpTokens);
      settings.ignore_end = true;
      tasks.push_back({&greeting, std::move(settings)});
    }
    engine.forget_texts();
    hold_conversations(engine, chat_template, tokenizer, tasks);
  }
}

std::vector<EvalRecord> records_of(int64_t prompt, std::vector<ConversationTurn> turns) {
  std::vector<EvalRecord> records;
  for (ConversationTurn& turn : turns) {
    EvalRecord record;
    record.prompt = prompt;
    record.turn = static_cast<int>(std::ssize(records));
    record.error = turn.error ? turn.error->what() : "";
    if (turn.reply) {
      ReplyReport& report = turn.reply->report;
      record.finish = report.finish;
      record.prompt_tokens = report.prompt_tokens;
      record.reused_tokens = report.reused_tokens;
      record.reply_tokens = report.reply_tokens;
      record.first_token_ms = report.first_token_ms;
      record.total_ms = report.total_ms;
      record.between_tokens_ms = std::move(report.between_tokens_ms);
      record.acceptance = report.acceptance;
      record.text_digest = digest_of(turn.reply->result.tokens);
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace

int64_t differing_replies(std::span<const EvalRecord> first, std::span<const EvalRecord> other) {
  const auto place = [](const EvalRecord& record) { return std::pair(record.prompt, record.turn); };
  int64_t count = 0;
  size_t a = 0;
  size_t b = 0;
  while (a < first.size() && b < other.size()) {
    if (place(first[a]) != place(other[b])) {
      ++count;  // a turn that only one of them came to
      place(first[a]) < place(other[b]) ? ++a : ++b;
      continue;
    }
    const bool same = first[a].text_digest == other[b].text_digest &&
                      first[a].reply_tokens == other[b].reply_tokens &&
                      first[a].error == other[b].error;
    count += same ? 0 : 1;
    ++a;
    ++b;
  }
  return count + std::ssize(first) + std::ssize(other) - static_cast<int64_t>(a + b);
}

Evaluation evaluate(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const EvalRequest& request,
    FunctionRef<void(int64_t)> on_batch
) {
  OCTET_CHECK(request.concurrency >= 1 && request.concurrency <= engine.options().parallel);
  OCTET_CHECK(!request.arms.empty());
  Evaluation out;
  for (const EvalArmSettings& arm : request.arms) {
    out.arms.push_back({arm, 0.0, {}});
  }
  warm_up(engine, chat_template, tokenizer, request);
  const auto count = std::ssize(request.prompts);
  int64_t batches = 0;
  for (int64_t begin = 0; begin < count; begin += request.concurrency, ++batches) {
    const int64_t end = std::min(count, begin + request.concurrency);
    for (size_t a = 0; a < out.arms.size(); ++a) {
      // Whoever goes first is another one in every batch: a drifting machine treats all alike.
      EvalArm& arm = out.arms[(a + static_cast<size_t>(batches)) % out.arms.size()];
      std::vector<ConversationTask> tasks;
      for (int64_t i = begin; i < end; ++i) {
        const SuitePrompt& prompt = request.prompts[static_cast<size_t>(i)];
        tasks.push_back({&prompt, settings_of(request, arm.settings, i)});
      }
      engine.forget_texts();
      const Clock::time_point start = Clock::now();
      std::vector<std::vector<ConversationTurn>> batch =
          hold_conversations(engine, chat_template, tokenizer, tasks);
      arm.wall_ms += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      for (int64_t i = begin; i < end; ++i) {
        for (EvalRecord& record : records_of(i, std::move(batch[static_cast<size_t>(i - begin)]))) {
          arm.records.push_back(std::move(record));
        }
      }
    }
    on_batch(end);
  }
  for (size_t a = 1; a < out.arms.size(); ++a) {
    out.differing += differing_replies(out.arms.front().records, out.arms[a].records);
  }
  return out;
}

}  // namespace octet
