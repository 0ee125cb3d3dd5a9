// Members of messages and of chat_template_kwargs that no template would see. Some say something
// that the model should hear, and are refused; what else nobody knows is refused when the request
// is strict. Not for members that are read (chat/messages.h). Invariant: every error names the
// member.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "octet/serve/request_fields.h"

namespace octet::serve {

/// Members of an object: those that are read, those that would change the prompt and are not, and
/// those that change nothing.
struct Members {
  std::vector<std::string_view> read;
  std::vector<std::string_view> refused;
  std::vector<std::string_view> harmless;
};
/// Throws ApiError for a refused member unless it is empty; when strict for every unknown one. What
/// is no object is left to its reader.
void check_members(
    const Json& object, const std::string& place, const Members& members, bool strict
);

/// Throws ApiError for function_call, audio and refusal unless empty; when strict for every member
/// of a message, of a part of its content or of a call that is not OpenAI's.
void check_message_members(const Json& messages, bool strict);
/// Throws ApiError for what else than a function a tool of OpenAI's form holds.
void check_tool_members(const Json& tools);

/// Throws ApiError for a member of chat_template_kwargs that neither this server has read, as `own`
/// tells, nor the template mentions.
void refuse_unknown_arguments(
    const Json& arguments, RequestFields& own, std::string_view template_source
);

}  // namespace octet::serve
