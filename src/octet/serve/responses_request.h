// Bodies of OpenAI's responses API, as chat requests: items to messages, flat tools, text.format,
// reasoning. Nothing is stored, so whatever needs an earlier response is refused. Invariant: errors
// name the fields of this API.
#pragma once

#include "octet/serve/generation_request.h"

namespace octet::serve {

/// Throws ApiError.
GenerationRequest read_responses_request(const Json& body, const ServedModel& model);

}  // namespace octet::serve
