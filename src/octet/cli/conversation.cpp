#include "octet/cli/conversation.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_system(const Json& message) {
  return message["role"] == "system" || message["role"] == "developer";
}

/// Of a message that was loaded: a string, or parts of which the text counts.
std::string text_of(const Json& content) {
  if (content.is_string()) {
    return content.get<std::string>();
  }
  std::string text;
  for (const Json& part : content) {
    if (part.is_object() && part.value("text", Json()).is_string()) {
      text += part["text"].get<std::string>();
    }
  }
  return text;
}

}  // namespace

Conversation::Conversation(const std::string& system)
    : messages_(std::make_unique<Json>(Json::array())) {
  set_system(system);
}

Conversation::~Conversation() = default;

void Conversation::reset() {
  cut(!messages_->empty() && is_system(messages_->front()) ? 1 : 0);
}

void Conversation::set_system(const std::string& text) {
  if (!messages_->empty() && is_system(messages_->front())) {
    messages_->erase(0);
  }
  if (!text.empty()) {
    messages_->insert(messages_->begin(), Json({{"role", "system"}, {"content", text}}));
  }
}

std::string Conversation::system() const {
  const bool any = !messages_->empty() && is_system(messages_->front()) &&
                   messages_->front()["content"].is_string();
  return any ? messages_->front()["content"].get<std::string>() : std::string();
}

void Conversation::add_user(const std::string& text) {
  messages_->push_back({{"role", "user"}, {"content", text}});
}

void Conversation::add_reply(const Reply& reply, bool with_calls) {
  Json message = {{"role", "assistant"}, {"content", reply.speech}};
  if (!reply.thinking.empty()) {
    message["reasoning_content"] = reply.thinking;
  }
  if (with_calls && !reply.calls.empty()) {
    ++replies_;
    message["tool_calls"] = Json::array();
    for (const ToolCall& call : reply.calls) {
      message["tool_calls"].push_back(
          {{"id", fmt::format("call_{}_{}", replies_, message["tool_calls"].size())},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", call.arguments}}}}
      );
    }
  }
  messages_->push_back(std::move(message));
}

void Conversation::add_answer(size_t index, const std::string& text) {
  messages_->push_back(
      {{"role", "tool"},
       {"tool_call_id", fmt::format("call_{}_{}", replies_, index)},
       {"content", text}}
  );
}

size_t Conversation::size() const {
  return messages_->size();
}

void Conversation::cut(size_t size) {
  while (messages_->size() > size) {
    messages_->erase(messages_->size() - 1);
  }
}

std::optional<std::string> Conversation::undo() {
  for (size_t i = messages_->size(); i-- > 0;) {
    const Json& message = (*messages_)[i];
    if (message["role"] == "user") {
      std::string text = text_of(message["content"]);
      cut(i);
      return text;
    }
  }
  return std::nullopt;
}

std::string Conversation::saved() const {
  return Json({{"messages", *messages_}}).dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

void Conversation::load(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("messages")) {
    json = Json(std::move(json["messages"]));
  }
  bool good = json.is_array();
  for (size_t i = 0; good && i < json.size(); ++i) {
    good = json[i].is_object() && json[i].contains("role") && json[i]["role"].is_string() &&
           json[i].contains("content");
  }
  if (!good) {
    throw Error(
        ErrorKind::kMalformed,
        "expected {\"messages\": [{\"role\": ..., \"content\": ...}, ...]}, as /save writes it"
    );
  }
  *messages_ = std::move(json);
}

std::vector<TokenId> Conversation::prompt(
    const ChatTemplate& chat,
    const Tokenizer& tokenizer,
    const nlohmann::ordered_json& tools,
    const ChatOptions& options
) const {
  return encode_chat(chat, tokenizer, *messages_, tools, options);
}

}  // namespace octet::cli
