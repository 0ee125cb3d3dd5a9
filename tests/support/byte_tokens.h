// Tokens of single bytes: what a model writes where the vocabulary has no piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/text/tokenizer.h"

namespace octet::test {

/// The text by which a vocabulary names the token of a byte: <0x0A>.
inline std::string byte_piece(uint8_t byte) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const auto value = static_cast<size_t>(byte);
  return std::string("<0x") + kHex[value >> 4] + kHex[value & 15] + ">";
}

/// `bytes` with a token for each, whatever pieces there are for them; every vocabulary has all 256.
inline std::vector<TokenId> byte_tokens(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<TokenId> tokens;
  for (const char byte : bytes) {
    tokens.push_back(tokenizer.find(byte_piece(static_cast<uint8_t>(byte))));
  }
  return tokens;
}

}  // namespace octet::test
