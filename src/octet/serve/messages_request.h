// Bodies of Anthropic's messages API, as chat requests: blocks to messages, tools with their
// input_schema, thinking. Invariant: errors name the fields of this API.
#pragma once

#include "octet/serve/generation_request.h"

namespace octet::serve {

/// Throws ApiError.
GenerationRequest read_messages_request(const Json& body, const ServedModel& model);

/// {"input_tokens"} of what would be the prompt. Throws ApiError.
Json count_message_tokens(const Json& body, const ServedModel& model);

}  // namespace octet::serve
