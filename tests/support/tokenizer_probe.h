// What the fuzzer of the tokenizer does with one input; the ordinary tests run it on seeded inputs.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/text/load_tokenizer.h"
#include "octet/text/reply_parser.h"
#include "octet/text/stop_matcher.h"
#include "octet/text/stream_decoder.h"
#include "support/tokenizer_fixtures.h"

namespace octet::test {

/// A tokenizer either gives the text back, without control tokens, or octet has a bug.
inline void probe_encoding(
    const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text
) {
  const std::vector<TokenId> plain = tokenizer->encode(text, SpecialTokens::kPlain);
  const std::string decoded = tokenizer->decode(plain);
  OCTET_CHECK(spaces_for_symbols(decoded) == spaces_for_symbols(text));
  StreamDecoder decoder;
  std::string streamed;
  for (const TokenId id : plain) {
    OCTET_CHECK(!tokenizer->is_control(id));
    streamed.append(decoder.push(tokenizer->bytes(id)));
  }
  OCTET_CHECK(streamed + decoder.flush() == replace_invalid_utf8(decoded));

  const std::vector<TokenId> parsed = tokenizer->encode(text, SpecialTokens::kParse);
  OCTET_CHECK(spaces_for_symbols(tokenizer->decode(parsed)) == spaces_for_symbols(text));
  ReplyParser parser(tokenizer);
  std::vector<ReplyEvent> events;
  for (const TokenId id : parsed) {
    parser.push(id, events);
  }
  parser.finish(events);
  for (const ReplyEvent& event : events) {
    OCTET_CHECK(is_valid_utf8(event.text));
  }
}

/// A vocabulary out of the input: control and byte tokens, and one piece a line; every split of a
/// piece whose halves exist is a merge.
inline std::shared_ptr<const Tokenizer> made_up_tokenizer(std::string_view input) {
  TokenizerParts parts = TokenizerParts::with_characters({});
  while (!input.empty()) {
    const size_t end = std::min(input.find('\x1F'), input.size());
    const std::string piece(input.substr(0, end));
    parts.pieces.push_back(piece);
    for (size_t split = 1; split < piece.size() && split < 32; ++split) {
      const std::string left = piece.substr(0, split);
      const std::string right = piece.substr(split);
      const auto known = [&](const std::string& half) {
        return std::find(parts.pieces.begin(), parts.pieces.end(), half) != parts.pieces.end();
      };
      if (known(left) && known(right)) {
        parts.merges.emplace_back(left, right);
      }
    }
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  return std::make_shared<const Tokenizer>(parts.source());
}

/// The first byte chooses what the others are.
inline void probe_tokenizer(std::string_view input) {
  if (input.empty()) {
    return;
  }
  const char choice = input.front();
  input.remove_prefix(1);
  try {
    if (choice % 3 == 0) {
      probe_encoding(tokenizer_from_json(input), "the text <|turn>\n\n \xF0\x9F\xA6\x9C");
    } else if (choice % 3 == 1) {
      probe_encoding(tiny_tokenizer(), input);
    } else {
      const size_t half = input.size() / 2;
      probe_encoding(made_up_tokenizer(input.substr(0, half)), input.substr(half));
    }
  } catch (const Error&) {  // a malformed tokenizer: as it should be
  }
}

}  // namespace octet::test
