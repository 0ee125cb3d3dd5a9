// Members of messages and of chat_template_kwargs that no template would see. Some say something
// that the model should hear, and are refused; what else nobody knows is refused when the request
// is strict. Not for members that are read (chat/messages.h). Invariant: every error names the
// member.
#pragma once

#include <string_view>

#include "octet/serve/request_fields.h"

namespace octet::serve {

/// Throws ApiError for function_call, audio and refusal unless empty; when strict for every member
/// of a message or of a part of its content that is not OpenAI's.
void check_message_members(const Json& messages, bool strict);

/// Throws ApiError for a member of chat_template_kwargs that neither this server has read, as `own`
/// tells, nor the template mentions.
void refuse_unknown_arguments(
    const Json& arguments, RequestFields& own, std::string_view template_source
);

}  // namespace octet::serve
