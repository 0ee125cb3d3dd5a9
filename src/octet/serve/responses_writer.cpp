// OpenAI's responses: output items, and a stream of typed, numbered events.

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/reply_form.h"
#include "octet/serve/reply_writer.h"

namespace octet::serve {
namespace {

class ResponsesWriter final : public ReplyWriter {
 public:
  ResponsesWriter(ReplyHead head, const GenerationRequest& request)
      : head_(std::move(head)), request_(request) {}

  std::string open() override {
    const Json begun = response("in_progress", Json::array());
    std::string events = event("response.created", {{"response", begun}});
    events += event("response.in_progress", {{"response", begun}});
    return events;
  }

  std::string step(ChoiceStep step) override {
    std::string events;
    for (const ReplyPiece& piece : step.pieces) {
      events += advance(step.text, piece.item + 1);
      if (!piece.text.empty()) {
        events += delta(step.text, piece);
      }
    }
    return events;
  }

  std::string finish(int64_t /*choice*/, const ChoiceText& text) override {
    return close(text, complete(text) ? "completed" : "incomplete");
  }

  std::string end(const std::vector<ChoiceText>& choices) override {
    const char* type = complete(choices[0]) ? "response.completed" : "response.incomplete";
    return event(type, {{"response", whole(choices)}});
  }

  std::string broken(const ApiError& error) override {
    Json failed = response("failed", Json::array());
    failed["error"] = {{"code", "server_error"}, {"message", error.what()}};
    return event("response.failed", {{"response", std::move(failed)}});
  }

  Json whole(const std::vector<ChoiceText>& choices) override {
    const ChoiceText& text = choices[0];
    const char* status = complete(text) ? "completed" : "incomplete";
    Json output = Json::array();
    for (size_t i = 0; i < text.items.size(); ++i) {
      output.push_back(item_of(text, i, i + 1 == text.items.size() ? status : "completed"));
    }
    Json body = response(status, std::move(output));
    if (!complete(text)) {
      const bool limit = text.finish_detail == "length" || text.finish_detail == "context";
      body["incomplete_details"] = {{"reason", limit ? "max_output_tokens" : text.finish_detail}};
    }
    const Json usage = usage_of(choices);
    body["usage"] = {
        {"input_tokens", usage["prompt_tokens"]},
        {"input_tokens_details",
         {{"cached_tokens", usage["prompt_tokens_details"]["cached_tokens"]}}},
        {"output_tokens", usage["completion_tokens"]},
        {"output_tokens_details",
         {{"reasoning_tokens", usage["completion_tokens_details"]["reasoning_tokens"]}}},
        {"total_tokens", usage["total_tokens"]}};
    body["finish_detail"] = text.finish_detail;
    body["timings"] = timings_of(text);
    body["metrics"] = metrics_of(choices);
    return body;
  }

 private:
  static bool complete(const ChoiceText& text) {
    return text.finish_detail == "stop_token" || text.finish_detail == "stop_string" ||
           text.finish_detail == "one_tool_call";
  }

  Json response(const char* status, Json output) const {
    Json body = {
        {"id", head_.id},
        {"object", "response"},
        {"created_at", head_.created},
        {"status", status},
        {"error", nullptr},
        {"incomplete_details", nullptr},
        {"model", head_.model},
        {"output", std::move(output)},
        {"usage", nullptr}};
    body.update(*request_.echo);
    return body;
  }

  std::string event(const char* type, Json fields) {
    Json body = {{"type", type}, {"sequence_number", sequence_++}};
    body.update(std::move(fields));
    return named_event(type, body);
  }

  std::string item_id(const ChoiceText& text, size_t index) const {
    const ItemKind kind = text.items[index].kind;
    const char* prefix = kind == ItemKind::kThought  ? "rs"
                         : kind == ItemKind::kSpeech ? "msg"
                                                     : "fc";
    return fmt::format("{}_{}_{}", prefix, head_.id, index);
  }

  static Json part_of(ItemKind kind, const std::string& text) {
    if (kind == ItemKind::kThought) {
      return {{"type", "reasoning_text"}, {"text", text}};
    }
    return {
        {"type", "output_text"},
        {"text", text},
        {"annotations", Json::array()},
        {"logprobs", Json::array()}};
  }

  Json item_of(const ChoiceText& text, size_t index, const char* status) const {
    const ReplyItem& item = text.items[index];
    const bool begun = std::string_view(status) != "in_progress";
    Json body = {{"id", item_id(text, index)}};
    if (item.kind == ItemKind::kToolCall) {
      body["type"] = "function_call";
      body["status"] = begun && !item.complete ? "incomplete" : status;
      body["call_id"] = item.call_id;
      body["name"] = item.name;
      body["arguments"] = begun ? item.text : std::string();
      return body;
    }
    const bool thought = item.kind == ItemKind::kThought;
    body["type"] = thought ? "reasoning" : "message";
    body["status"] = status;
    if (thought) {
      body["summary"] = Json::array();
    } else {
      body["role"] = "assistant";
    }
    body["content"] = Json::array();
    if (begun) {
      body["content"].push_back(part_of(item.kind, item.text));
    }
    return body;
  }

  /// Where an event belongs: item, output index, and part of the content.
  Json place(const ChoiceText& text, size_t index) const {
    Json fields = {{"item_id", item_id(text, index)}, {"output_index", index}};
    if (text.items[index].kind != ItemKind::kToolCall) {
      fields["content_index"] = 0;
    }
    return fields;
  }

  /// Closes what is open and opens items until `opened_` is `goal`.
  std::string advance(const ChoiceText& text, size_t goal) {
    std::string events;
    while (opened_ < goal) {
      events += close(text, "completed");
      const size_t index = opened_++;
      events += event(
          "response.output_item.added",
          {{"output_index", index}, {"item", item_of(text, index, "in_progress")}}
      );
      if (text.items[index].kind != ItemKind::kToolCall) {
        Json fields = place(text, index);
        fields["part"] = part_of(text.items[index].kind, "");
        events += event("response.content_part.added", std::move(fields));
      }
    }
    return events;
  }

  std::string delta(const ChoiceText& text, const ReplyPiece& piece) {
    Json fields = place(text, piece.item);
    fields["delta"] = piece.text;
    switch (text.items[piece.item].kind) {
      case ItemKind::kThought:
        return event("response.reasoning_text.delta", std::move(fields));
      case ItemKind::kSpeech:
        fields["logprobs"] = Json::array();
        return event("response.output_text.delta", std::move(fields));
      case ItemKind::kToolCall:
        break;
    }
    return event("response.function_call_arguments.delta", std::move(fields));
  }

  /// The last opened item's end.
  std::string close(const ChoiceText& text, const char* status) {
    if (closed_ == opened_) {
      return {};
    }
    const size_t index = closed_++;
    const ReplyItem& item = text.items[index];
    std::string events;
    Json fields = place(text, index);
    if (item.kind == ItemKind::kToolCall) {
      fields["name"] = item.name;
      fields["arguments"] = item.text;
      events += event("response.function_call_arguments.done", std::move(fields));
    } else {
      Json part = fields;
      part["part"] = part_of(item.kind, item.text);
      fields["text"] = item.text;
      if (item.kind == ItemKind::kSpeech) {
        fields["logprobs"] = Json::array();
      }
      events += event(
          item.kind == ItemKind::kThought ? "response.reasoning_text.done"
                                          : "response.output_text.done",
          std::move(fields)
      );
      events += event("response.content_part.done", std::move(part));
    }
    events += event(
        "response.output_item.done",
        {{"output_index", index}, {"item", item_of(text, index, status)}}
    );
    return events;
  }

  ReplyHead head_;
  const GenerationRequest& request_;
  int64_t sequence_ = 0;
  size_t opened_ = 0;  // items
  size_t closed_ = 0;
};

}  // namespace

std::unique_ptr<ReplyWriter> make_responses_writer(
    ReplyHead head, const GenerationRequest& request
) {
  return std::make_unique<ResponsesWriter>(std::move(head), request);
}

}  // namespace octet::serve
