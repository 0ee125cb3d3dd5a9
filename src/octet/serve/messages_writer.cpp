// Anthropic's messages: content blocks, and a stream that opens and closes them one by one.

#include <utility>

#include <nlohmann/json.hpp>

#include "octet/serve/reply_form.h"
#include "octet/serve/reply_writer.h"

namespace octet::serve {
namespace {

Json usage_of_message(const ReplyReport& report, int64_t thinking_tokens) {
  return {
      {"input_tokens", report.prompt_tokens - report.reused_tokens},
      {"cache_creation_input_tokens", 0},
      {"cache_read_input_tokens", report.reused_tokens},
      {"output_tokens", report.reply_tokens},
      {"output_tokens_details", {{"thinking_tokens", thinking_tokens}}}};
}

std::string stop_reason_of(const ChoiceText& text) {
  if (!text.stop_string.empty()) {
    return "stop_sequence";
  }
  if (text.finish_detail == "context") {
    return "model_context_window_exceeded";
  }
  if (text.finish_reason == "length") {
    return "max_tokens";
  }
  return text.finish_reason == "tool_calls" ? "tool_use" : "end_turn";
}

Json stop_of(const ChoiceText& text) {
  return {
      {"stop_reason", stop_reason_of(text)},
      {"stop_sequence", text.stop_string.empty() ? Json() : Json(text.stop_string)}};
}

Json block_of(const ReplyItem& item, bool whole) {
  const std::string text = whole ? item.text : std::string();
  switch (item.kind) {
    case ItemKind::kThought:
      return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
    case ItemKind::kSpeech:
      return {{"type", "text"}, {"text", text}, {"citations", nullptr}};
    case ItemKind::kToolCall:
      break;
  }
  return {
      {"type", "tool_use"},
      {"id", item.call_id},
      {"name", item.name},
      {"input", whole ? Json::parse(text, nullptr, false) : Json::object()}};
}

Json delta_of(ItemKind kind, const std::string& text) {
  switch (kind) {
    case ItemKind::kThought:
      return {{"type", "thinking_delta"}, {"thinking", text}};
    case ItemKind::kSpeech:
      return {{"type", "text_delta"}, {"text", text}};
    case ItemKind::kToolCall:
      break;
  }
  return {{"type", "input_json_delta"}, {"partial_json", text}};
}

class MessagesWriter final : public ReplyWriter {
 public:
  explicit MessagesWriter(ReplyHead head) : head_(std::move(head)) {}

  std::string started(const ReplyStarted& event) override {
    ReplyReport so_far;
    so_far.prompt_tokens = event.prompt_tokens;
    so_far.reused_tokens = event.reused_tokens;
    return begin(so_far) + named_event("ping", {{"type", "ping"}});
  }

  std::string step(ChoiceStep step) override {
    std::string events;
    for (const ReplyPiece& piece : step.pieces) {
      const ReplyItem& item = step.text.items[piece.item];
      if (piece.item >= opened_) {
        events += close();
        opened_ = piece.item + 1;
        events += block_event("content_block_start", "content_block", block_of(item, false));
      }
      if (!piece.text.empty()) {
        events += block_event("content_block_delta", "delta", delta_of(item.kind, piece.text));
      }
    }
    return events;
  }

  std::string finish(int64_t /*choice*/, const ChoiceText& text) override {
    // A reply that ended in the queue was never started.
    std::string events = begun_ ? std::string() : begin(text.report);
    events += close();
    Json body = {{"type", "message_delta"}, {"delta", stop_of(text)}};
    body["usage"] = usage_of_message(text.report, text.thinking_tokens);
    body["finish_detail"] = text.finish_detail;
    body["timings"] = timings_of(text);
    return events + named_event("message_delta", body);
  }

  std::string end(const std::vector<ChoiceText>& /*choices*/) override {
    return named_event("message_stop", {{"type", "message_stop"}});
  }

  std::string broken(const ApiError& error) override {
    return "event: error\ndata: " + error.body(ErrorForm::kAnthropic) + "\n\n";
  }

  Json whole(const std::vector<ChoiceText>& choices) override {
    const ChoiceText& text = choices[0];
    Json body = message(text.report);
    for (const ReplyItem& item : text.items) {
      body["content"].push_back(block_of(item, true));
    }
    body.update(stop_of(text));
    body["usage"] = usage_of_message(text.report, text.thinking_tokens);
    body["finish_detail"] = text.finish_detail;
    body["timings"] = timings_of(text);
    body["metrics"] = metrics_of(choices);
    return body;
  }

 private:
  Json message(const ReplyReport& report) const {
    return {
        {"id", head_.id},
        {"type", "message"},
        {"role", "assistant"},
        {"model", head_.model},
        {"content", Json::array()},
        {"stop_reason", nullptr},
        {"stop_sequence", nullptr},
        {"usage", usage_of_message(report, 0)}};
  }

  std::string begin(const ReplyReport& report) {
    begun_ = true;
    return named_event("message_start", {{"type", "message_start"}, {"message", message(report)}});
  }

  /// About the last opened block.
  std::string block_event(const char* type, const char* field, Json value) const {
    Json body = {{"type", type}, {"index", opened_ - 1}};
    body[field] = std::move(value);
    return named_event(type, body);
  }

  std::string close() const {
    if (opened_ == 0) {
      return {};
    }
    return named_event(
        "content_block_stop", {{"type", "content_block_stop"}, {"index", opened_ - 1}}
    );
  }

  ReplyHead head_;
  bool begun_ = false;
  size_t opened_ = 0;  // blocks
};

}  // namespace

std::unique_ptr<ReplyWriter> make_messages_writer(ReplyHead head) {
  return std::make_unique<MessagesWriter>(std::move(head));
}

}  // namespace octet::serve
