// What can be asked about text without a reply: ids, pieces, prompts as the template renders them.
// Pure functions of body and model. Invariant: detokenize(tokenize(x)) is x.
#pragma once

#include "octet/serve/generation_request.h"

namespace octet::serve {

Json tokenize_text(const Json& body, const ServedModel& model);
Json detokenize_text(const Json& body, const ServedModel& model);
Json render_prompt(const Json& body, const ServedModel& model);

}  // namespace octet::serve
