#include "octet/serve/chat_translation.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/prompt_members.h"

namespace octet::serve {

ChatTranslation::ChatTranslation(const Json& body)
    : chat_(std::make_unique<Json>(body)),
      messages_(std::make_unique<Json>(Json::array())),
      strict_(body.value("strict", Json()) == true) {}

ChatTranslation::~ChatTranslation() = default;

void append_text(Json& text, const std::string& more) {
  if (text.is_null()) {
    text = more;
  } else {
    text.get_ref<std::string&>() += more;
  }
}

Json ChatTranslation::take(const char* name) {
  const auto place = chat_->find(name);
  if (place == chat_->end()) {
    return nullptr;
  }
  Json value = std::move(*place);
  chat_->erase(place);
  return value;
}

void ChatTranslation::drop(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    chat_->erase(name);
  }
}

void ChatTranslation::refuse_foreign(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    const auto place = chat_->find(name);
    if (place != chat_->end() && !place->is_null()) {
      throw ApiError(name, fmt::format("{} is not a field of this request", name))
          .with_code("unknown_field");
    }
  }
}

void ChatTranslation::refuse_unless(const char* name, const Json& harmless) {
  const Json value = take(name);
  if (!value.is_null() && value != false && value != harmless) {
    throw ApiError(name, fmt::format("{} is not supported", name)).with_code("unsupported_field");
  }
}

void ChatTranslation::refuse(const char* name) {
  refuse_unless(name, nullptr);
}

void ChatTranslation::expect_members(
    const Json& value, const std::string& place, const std::vector<std::string_view>& read
) const {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      check_members(value[i], fmt::format("{}[{}]", place, i), {read, {}, {}}, strict_);
    }
  } else {
    check_members(value, place, {read, {}, {}}, strict_);
  }
}

void ChatTranslation::add_message(Json message) {
  messages_->push_back(std::move(message));
}

void ChatTranslation::add_system(const std::string& text) {
  if (!messages_->empty()) {
    messages_->push_back({{"role", "system"}, {"content", text}});  // the template's to judge
    return;
  }
  system_ += system_.empty() ? text : "\n\n" + text;
}

Json& ChatTranslation::assistant() {
  if (messages_->empty() || messages_->back()["role"] != "assistant") {
    messages_->push_back({{"role", "assistant"}, {"content", nullptr}});
  }
  return messages_->back();
}

void ChatTranslation::finish_messages() {
  Json all = Json::array();
  if (!system_.empty()) {
    all.push_back({{"role", "system"}, {"content", system_}});
  }
  for (Json& message : *messages_) {
    all.push_back(std::move(message));
  }
  *messages_ = Json::array();
  (*chat_)["messages"] = std::move(all);
}

void refuse_field(const std::string& field, const std::string& sentence) {
  throw ApiError(field, fmt::format("{} {}", field, sentence));
}

std::string text_member(const Json& object, const char* name, const std::string& place) {
  const auto member = object.find(name);
  const std::string field = fmt::format("{}.{}", place, name);
  if (member == object.end() || !member->is_string()) {
    refuse_field(field, "must be a string");
  }
  return member->get<std::string>();
}

std::string text_of_part(
    const Json& part, const std::string& place, std::initializer_list<std::string_view> types
) {
  if (!part.is_object()) {
    refuse_field(place, "must be an object with a type");
  }
  const std::string type = text_member(part, "type", place);
  if (std::ranges::find(types, type) == types.end()) {
    throw ApiError(place, fmt::format("{} has the type '{}', and only text is read", place, type))
        .with_code("unsupported");
  }
  return text_member(part, type == "refusal" ? "refusal" : "text", place);
}

std::string text_of_parts(
    const Json& content, const std::string& place, std::initializer_list<std::string_view> types
) {
  if (content.is_string()) {
    return content.get<std::string>();
  }
  if (!content.is_array()) {
    refuse_field(place, "expects a string or an array of parts");
  }
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    text += text_of_part(content[i], fmt::format("{}[{}]", place, i), types);
  }
  return text;
}

Json function_tool(
    const Json& name, const Json& description, const Json& schema, const Json& strict
) {
  Json function = {{"name", name}};
  if (!description.is_null()) {
    function["description"] = description;
  }
  if (!schema.is_null()) {
    function["parameters"] = schema;
  }
  if (!strict.is_null()) {
    function["strict"] = strict;
  }
  Json tool = {{"type", "function"}};
  tool["function"] = std::move(function);
  return tool;
}

void rename_field(ApiError& error, std::span<const FieldName> names) {
  for (const auto& [chat, own] : names) {
    const bool whole = error.param() == chat;
    if (whole || error.param().starts_with(fmt::format("{}.", chat))) {
      error.rename(chat, own);
      return;
    }
  }
}

}  // namespace octet::serve
