// Messages of a request, checked and brought to the one form that templates know: content is a
// string or absent, arguments of calls are objects, a tool's answer has the tool's name. Not for
// rendering (chat_template.h).
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "octet/jinja/value.h"

namespace octet {

/// Throws Error naming the message and field: kInvalidArgument for another form, kUnsupported for
/// parts that are not text. `appended` is put behind the content of the last message, which must
/// then be the assistant's; empty: nothing.
jinja::Value template_messages(const nlohmann::ordered_json& messages, std::string_view appended);

}  // namespace octet
