#include "octet/base/utf8.h"

namespace octet {
namespace {

/// What a lead byte announces: how many bytes follow, and the range of the first of them (Unicode
/// table 3-7).
struct Lead {
  int following = -1;  // -1: not a lead byte
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) {
    return {.following = 0};
  }
  if (byte < 0xC2 || byte > 0xF4) {
    return {};
  }
  if (byte < 0xE0) {
    return {.following = 1};
  }
  if (byte < 0xF0) {
    // E0 would be overlong below A0; ED from A0 on would be a surrogate.
    return {
        .following = 2,
        .low = static_cast<uint8_t>(byte == 0xE0 ? 0xA0 : 0x80),
        .high = static_cast<uint8_t>(byte == 0xED ? 0x9F : 0xBF)};
  }
  // F0 would be overlong below 90; F4 from 90 on would be above U+10FFFF.
  return {
      .following = 3,
      .low = static_cast<uint8_t>(byte == 0xF0 ? 0x90 : 0x80),
      .high = static_cast<uint8_t>(byte == 0xF4 ? 0x8F : 0xBF)};
}

}  // namespace

Utf8Step decode_utf8(std::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  Lead lead = lead_of(first);
  if (lead.following < 0) {
    return {};
  }
  if (lead.following == 0) {
    return {.code_point = first, .length = 1, .status = Utf8Status::kValid};
  }
  char32_t code_point = first & (0x3FU >> lead.following);
  for (int i = 1; i <= lead.following; ++i) {
    if (at + static_cast<size_t>(i) >= text.size()) {
      return {.length = i, .status = Utf8Status::kIncomplete};
    }
    const auto byte = static_cast<uint8_t>(text[at + static_cast<size_t>(i)]);
    if (byte < lead.low || byte > lead.high) {
      return {.length = i, .status = Utf8Status::kInvalid};
    }
    code_point = (code_point << 6) | (byte & 0x3FU);
    lead.low = 0x80;
    lead.high = 0xBF;
  }
  return {.code_point = code_point, .length = lead.following + 1, .status = Utf8Status::kValid};
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    if (step.status != Utf8Status::kValid) {
      return false;
    }
    at += static_cast<size_t>(step.length);
  }
  return true;
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto byte = [&out](char32_t value) {
    out.push_back(static_cast<char>(static_cast<uint8_t>(value)));
  };
  if (code_point < 0x80) {
    byte(code_point);
  } else if (code_point < 0x800) {
    byte(0xC0 | (code_point >> 6));
    byte(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    byte(0xE0 | (code_point >> 12));
    byte(0x80 | ((code_point >> 6) & 0x3F));
    byte(0x80 | (code_point & 0x3F));
  } else {
    byte(0xF0 | (code_point >> 18));
    byte(0x80 | ((code_point >> 12) & 0x3F));
    byte(0x80 | ((code_point >> 6) & 0x3F));
    byte(0x80 | (code_point & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const auto length = static_cast<size_t>(step.length);
    out.append(step.status == Utf8Status::kValid ? text.substr(at, length) : kReplacementUtf8);
    at += length;
  }
  return out;
}

}  // namespace octet
