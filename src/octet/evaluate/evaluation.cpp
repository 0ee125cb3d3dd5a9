#include "octet/evaluate/evaluation.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/chat/reply_reader.h"
#include "octet/evaluate/digest.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

uint64_t digest_of(std::span<const TokenId> tokens) {
  Digest digest;
  for (const TokenId token : tokens) {
    digest.add(static_cast<uint64_t>(token));
  }
  return digest.value();
}

/// Waits for the reply's end. Throws what ended it before.
ReplyFinished wait_for(ReplyStream& stream) {
  for (;;) {
    ReplyStreamEvent event = stream.next();
    if (auto* finished = std::get_if<ReplyFinished>(&event)) {
      return std::move(*finished);
    }
    if (auto* failed = std::get_if<ReplyFailed>(&event)) {
      throw failed->error;
    }
  }
}

/// One conversation of one arm: its turns, one after the other, each with the replies before it.
class Conversation {
 public:
  Conversation(
      Engine& engine,
      const ChatTemplate& chat_template,
      const std::shared_ptr<const Tokenizer>& tokenizer,
      const EvalRequest& request,
      const EvalArmSettings& arm,
      int64_t index
  )
      : engine_(engine),
        template_(chat_template),
        tokenizer_(tokenizer),
        request_(request),
        arm_(arm),
        index_(index),
        prompt_(request.prompts[static_cast<size_t>(index)]) {}

  void run() {
    if (!prompt_.system.empty()) {
      messages_.push_back({{"role", "system"}, {"content", prompt_.system}});
    }
    const auto turns = std::ssize(prompt_.turns);
    const int64_t count = request_.max_turns > 0 ? std::min(turns, request_.max_turns) : turns;
    for (int64_t turn = 0; turn < count && !over_; ++turn) {
      messages_.push_back({{"role", "user"}, {"content", prompt_.turns[static_cast<size_t>(turn)]}}
      );
      EvalRecord record;
      record.prompt = index_;
      record.turn = static_cast<int>(turn);
      try {
        answer(record);
      } catch (const Error& error) {
        record.error = error.what();
        over_ = true;
      }
      records_.push_back(std::move(record));
    }
  }

  std::vector<EvalRecord> take_records() { return std::move(records_); }

 private:
  void answer(EvalRecord& record) {
    const Json arguments = {{"enable_thinking", request_.thinking}};
    ChatInput input;
    input.messages = &messages_;
    input.tools = prompt_.tools.get();
    input.arguments = &arguments;
    EngineRequest ask;
    ask.generate.prompt = template_.encode(*tokenizer_, input);
    ask.generate.sampling = request_.sampling;
    ask.generate.sampling.seed += static_cast<uint64_t>(index_);
    ask.generate.max_tokens = request_.max_tokens;
    ask.generate.draft_max = arm_.draft_max;
    ask.generate.adapt_drafts = arm_.adaptive;
    if (request_.ignore_end) {
      ask.generate.stop_tokens.emplace();
    }
    const std::vector<TokenId> prompt = ask.generate.prompt;
    const std::shared_ptr<ReplyStream> stream = engine_.submit(std::move(ask));
    OCTET_CHECK(stream != nullptr);
    const ReplyFinished reply = wait_for(*stream);
    record.finish = reply.report.finish;
    record.prompt_tokens = reply.report.prompt_tokens;
    record.reused_tokens = reply.report.reused_tokens;
    record.reply_tokens = reply.report.reply_tokens;
    record.first_token_ms = reply.report.first_token_ms;
    record.total_ms = reply.report.total_ms;
    record.between_tokens_ms = reply.report.between_tokens_ms;
    record.acceptance = reply.report.acceptance;
    record.text_digest = digest_of(reply.result.tokens);
    remember(prompt, reply.result.tokens);
  }

  /// What was said becomes history. A tool call ends the conversation: nobody answers it.
  void remember(std::span<const TokenId> prompt, std::span<const TokenId> tokens) {
    ReplyReader reader(tokenizer_, {});
    reader.start(prompt);
    std::vector<ReplyDelta> deltas;
    for (const TokenId token : tokens) {
      reader.push(token, deltas);
    }
    reader.finish(deltas);
    std::string speech;
    for (const ReplyDelta& delta : deltas) {
      if (delta.kind == ReplyDeltaKind::kSpeech) {
        speech += delta.text;
      }
    }
    over_ = reader.calls() > 0;
    messages_.push_back({{"role", "assistant"}, {"content", std::move(speech)}});
  }

  Engine& engine_;
  const ChatTemplate& template_;
  const std::shared_ptr<const Tokenizer>& tokenizer_;
  const EvalRequest& request_;
  const EvalArmSettings& arm_;
  int64_t index_;
  const SuitePrompt& prompt_;
  Json messages_ = Json::array();
  std::vector<EvalRecord> records_;
  bool over_ = false;
};

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
  const auto count = std::ssize(request.prompts);
  int64_t batches = 0;
  for (int64_t begin = 0; begin < count; begin += request.concurrency, ++batches) {
    const int64_t end = std::min(count, begin + request.concurrency);
    for (size_t a = 0; a < out.arms.size(); ++a) {
      // Whoever goes first is another one in every batch: a drifting machine treats all alike.
      EvalArm& arm = out.arms[(a + static_cast<size_t>(batches)) % out.arms.size()];
      engine.forget_texts();
      std::vector<std::unique_ptr<Conversation>> batch;
      for (int64_t i = begin; i < end; ++i) {
        batch.push_back(std::make_unique<Conversation>(
            engine, chat_template, tokenizer, request, arm.settings, i
        ));
      }
      const Clock::time_point start = Clock::now();
      {
        std::vector<std::jthread> speakers;
        for (const std::unique_ptr<Conversation>& conversation : batch) {
          speakers.emplace_back([&conversation] { conversation->run(); });
        }
      }
      arm.wall_ms += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      for (const std::unique_ptr<Conversation>& conversation : batch) {
        for (EvalRecord& record : conversation->take_records()) {
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
