#include "octet/serve/prompt_members.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"

namespace octet::serve {
namespace {

/// Calls `check` with each entry of a member that is an array, and its place.
template <typename Check>
void for_each_entry(const Json& object, const char* name, const std::string& place, Check check) {
  const auto list = object.find(name);
  for (size_t i = 0; list != object.end() && list->is_array() && i < list->size(); ++i) {
    check((*list)[i], fmt::format("{}.{}[{}]", place, name, i));
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

/// An object that holds a function, and that function.
void check_function(
    const Json& object, const std::string& place, const Members& own, const Members& of_function
) {
  check_members(object, place, own, true);
  if (object.is_object() && object.contains("function")) {
    check_members(object["function"], place + ".function", of_function, true);
  }
}

}  // namespace

void check_members(
    const Json& object, const std::string& place, const Members& members, bool strict
) {
  if (!object.is_object()) {
    return;
  }
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

void check_message_members(const Json& messages, bool strict) {
  const Members of_message = {
      {"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "reasoning"},
      {"function_call", "audio", "refusal"},
      {"annotations"}};
  const Members of_part = {{"type", "text", "refusal"}, {}, {"annotations", "cache_control"}};
  const Members of_call = {{"id", "type", "function"}, {}, {"index"}};
  const Members of_function = {{"name", "arguments"}, {}, {}};
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object()) {
      continue;  // the template's reader says so
    }
    const std::string place = fmt::format("messages[{}]", i);
    check_members(messages[i], place, of_message, strict);
    for_each_entry(messages[i], "content", place, [&](const Json& part, const std::string& at) {
      check_members(part, at, of_part, strict);
    });
    if (strict) {
      for_each_entry(messages[i], "tool_calls", place, [&](const Json& call, const auto& at) {
        check_function(call, at, of_call, of_function);
      });
    }
  }
}

void check_tool_members(const Json& tools) {
  const Members of_function = {{"name", "description", "parameters", "strict"}, {}, {}};
  for (size_t i = 0; i < tools.size(); ++i) {
    check_function(
        tools[i], fmt::format("tools[{}]", i), {{"type", "function"}, {}, {}}, of_function
    );
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
