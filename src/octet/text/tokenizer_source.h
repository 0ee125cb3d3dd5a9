// What a file says about a tokenizer, before anything is checked: the common form of GGUF metadata
// and tokenizer.json. Strings are borrowed from the file's storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "octet/base/token.h"

namespace octet {

struct MergeText {
  std::string_view left;
  std::string_view right;
};

struct TokenizerSource {
  std::vector<std::string_view> pieces;  // by id
  std::vector<MergeText> merges;         // lowest rank first
  std::vector<TokenId> declared_special;
  int64_t bos = -1;               // only used when there is no piece "<bos>"
  std::vector<int64_t> stop_ids;  // in addition to <eos>, <turn|> and <|tool_response>
  std::vector<int64_t> suppressed_ids;
};

/// Splits "left right" at the first space that is not the first character: pieces hold U+2581,
/// never a space. Throws Error(kMalformed) naming the rank when there is none.
MergeText split_merge(std::string_view merge, size_t rank);

}  // namespace octet
