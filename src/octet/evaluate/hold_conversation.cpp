#include "octet/evaluate/hold_conversation.h"

#include <algorithm>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "octet/base/check.h"
#include "octet/chat/reply_reader.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

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

class Conversation {
 public:
  Conversation(
      Engine& engine,
      const ChatTemplate& chat_template,
      const std::shared_ptr<const Tokenizer>& tokenizer,
      const SuitePrompt& prompt,
      const ConversationSettings& settings
  )
      : engine_(engine),
        template_(chat_template),
        tokenizer_(tokenizer),
        prompt_(prompt),
        settings_(settings) {}

  std::vector<ConversationTurn> hold() {
    if (!prompt_.system.empty()) {
      messages_.push_back({{"role", "system"}, {"content", prompt_.system}});
    }
    const auto turns = std::ssize(prompt_.turns);
    const int64_t count = settings_.max_turns > 0 ? std::min(turns, settings_.max_turns) : turns;
    for (int64_t turn = 0; turn < count && !over_; ++turn) {
      messages_.push_back({{"role", "user"}, {"content", prompt_.turns[static_cast<size_t>(turn)]}}
      );
      ConversationTurn& said = turns_.emplace_back();
      try {
        answer(said);
      } catch (const Error& error) {
        said.error = error;
        over_ = true;
      }
    }
    return std::move(turns_);
  }

 private:
  void answer(ConversationTurn& said) {
    const Json arguments = {{"enable_thinking", settings_.thinking}};
    ChatInput input;
    input.messages = &messages_;
    input.tools = prompt_.tools.get();
    input.arguments = &arguments;
    EngineRequest ask;
    ask.generate.prompt = template_.encode(*tokenizer_, input);
    ask.generate.sampling = settings_.sampling;
    ask.generate.max_tokens = settings_.max_tokens;
    ask.generate.draft_max = settings_.draft_max;
    ask.generate.adapt_drafts = settings_.adapt_drafts;
    if (settings_.ignore_end) {
      ask.generate.stop_tokens.emplace();
    }
    said.prompt = ask.generate.prompt;
    const std::shared_ptr<ReplyStream> stream = engine_.submit(std::move(ask));
    OCTET_CHECK(stream != nullptr);
    said.reply = wait_for(*stream);
    remember(said.prompt, said.reply->result.tokens);
  }

  /// What was said becomes history.
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
  const SuitePrompt& prompt_;
  const ConversationSettings& settings_;
  Json messages_ = Json::array();
  std::vector<ConversationTurn> turns_;
  bool over_ = false;
};

}  // namespace

std::vector<ConversationTurn> hold_conversation(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const SuitePrompt& prompt,
    const ConversationSettings& settings
) {
  return Conversation(engine, chat_template, tokenizer, prompt, settings).hold();
}

std::vector<std::vector<ConversationTurn>> hold_conversations(
    Engine& engine,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    std::span<const ConversationTask> tasks
) {
  std::vector<std::vector<ConversationTurn>> conversations(tasks.size());
  std::vector<std::jthread> speakers;
  for (size_t i = 0; i < tasks.size(); ++i) {
    speakers.emplace_back([&, i] {
      conversations[i] =
          hold_conversation(engine, chat_template, tokenizer, *tasks[i].prompt, tasks[i].settings);
    });
  }
  speakers.clear();  // waits for them
  return conversations;
}

}  // namespace octet
