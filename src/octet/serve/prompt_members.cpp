#include "octet/serve/prompt_members.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"

namespace octet::serve {
namespace {

/// Members of an object that templates do not see: some would change the prompt, and are refused
/// unless empty; others are when the request is strict.
struct Members {
  std::vector<std::string_view> read;
  std::vector<std::string_view> refused;
  std::vector<std::string_view> harmless;
};

void check_members(
    const Json& object, const std::string& place, const Members& members, bool strict
) {
  const auto in = [](const std::vector<std::string_view>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const auto& [name, value] : object.items()) {
    const bool empty = value.is_null() || value == "" || (value.is_structured() && value.empty());
    if (empty || in(members.read, name)) {
      continue;
    }
    const bool refused = in(members.refused, name);
    if (refused || (strict && !in(members.harmless, name))) {
      const std::string field = fmt::format("{}.{}", place, name);
      throw ApiError(field, fmt::format("{} is not supported", field))
          .with_code(refused ? "unsupported_field" : "unknown_field");
    }
  }
}

/// Whether the template names such a variable anywhere.
bool mentions(std::string_view source, std::string_view name) {
  const auto of_a_name = [&](size_t at) {
    return at < source.size() &&
           (std::isalnum(static_cast<unsigned char>(source[at])) != 0 || source[at] == '_');
  };
  for (size_t at = source.find(name); !name.empty() && at != std::string_view::npos;
       at = source.find(name, at + 1)) {
    if ((at == 0 || !of_a_name(at - 1)) && !of_a_name(at + name.size())) {
      return true;
    }
  }
  return false;
}

}  // namespace

void check_message_members(const Json& messages, bool strict) {
  const Members of_message = {
      {"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning"},
      {"function_call", "audio", "refusal"},
      {"annotations"}};
  const Members of_part = {{"type", "text", "refusal"}, {}, {"annotations", "cache_control"}};
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      continue;  // the template's reader says so
    }
    const std::string place = fmt::format("messages[{}]", i);
    check_members(messages[i], place, of_message, strict);
    const auto content = messages[i].find("content");
    for (size_t k = 0; content != messages[i].end() && content->is_array() && k < content->size();
         ++k) {
      if ((*content)[k].is_object()) {
        check_members((*content)[k], fmt::format("{}.content[{}]", place, k), of_part, strict);
      }
    }
  }
}

void refuse_unknown_arguments(
    const Json& arguments, RequestFields& own, std::string_view template_source
) {
  for (const auto& [name, value] : arguments.items()) {
    if (mentions(template_source, name)) {
      own.find(name);
    }
  }
  own.refuse_unread(true);
}

}  // namespace octet::serve
