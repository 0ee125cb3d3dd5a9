#include "octet/formats/message_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace octet {

namespace {

constexpr size_t kShownBytes = 80;

}  // namespace

std::string shown(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kShownBytes)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > kShownBytes ? "...'" : "'";
  return out;
}

std::string shown_list(std::span<const std::string> names, size_t limit) {
  std::string out;
  for (size_t i = 0; i < std::min(limit, names.size()); ++i) {
    out += (i == 0 ? "" : ", ") + shown(names[i]);
  }
  if (names.size() > limit) {
    out += fmt::format(" and {} more", names.size() - limit);
  }
  return out;
}

}  // namespace octet
