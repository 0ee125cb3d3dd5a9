// The built-in templates as text; made at build time from chat/templates/*.jinja.
#pragma once

#include <string_view>

namespace octet {

extern const std::string_view kFirstMessageTemplate;
extern const std::string_view kBoltTemplate;
extern const std::string_view kGemma4Template;
extern const std::string_view kTurnsTemplate;

}  // namespace octet
