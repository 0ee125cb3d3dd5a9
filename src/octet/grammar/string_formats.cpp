#include "octet/grammar/string_formats.h"

#include <utility>

namespace octet {
namespace {

#define OCTET_DATE                                                                              \
  "[0-9]{3}[1-9]-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|" \
  "02-(0[1-9]|1[0-9]|2[0-8]))"
#define OCTET_TIME \
  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET_LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,40}[A-Za-z0-9])?"
#define OCTET_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define OCTET_HEX "[0-9a-fA-F]"

constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
    {"date", OCTET_DATE},
    {"time", OCTET_TIME},
    {"date-time", OCTET_DATE "T" OCTET_TIME},
    {"uuid", OCTET_HEX "{8}-" OCTET_HEX "{4}-" OCTET_HEX "{4}-" OCTET_HEX "{4}-" OCTET_HEX "{12}"},
    {"ipv4", OCTET_BYTE "\\." OCTET_BYTE "\\." OCTET_BYTE "\\." OCTET_BYTE},
    {"hostname", OCTET_LABEL "(\\." OCTET_LABEL "){0,4}"},
    {"email",
     "[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,3}@" OCTET_LABEL "(\\." OCTET_LABEL "){0,4}"},
    {"uri",
     "[a-z][a-z0-9+.-]{1,15}://" OCTET_LABEL "(\\." OCTET_LABEL "){0,4}(/[A-Za-z0-9._~-]*)*"},
};

#undef OCTET_DATE
#undef OCTET_TIME
#undef OCTET_LABEL
#undef OCTET_BYTE
#undef OCTET_HEX

}  // namespace

std::string_view string_format(std::string_view name) {
  for (const auto& [known, expression] : kFormats) {
    if (known == name) {
      return expression;
    }
  }
  return {};
}

}  // namespace octet
