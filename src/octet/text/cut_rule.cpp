#include "octet/text/cut_rule.h"

#include "octet/base/utf8.h"

namespace octet {

CutRule::CutRule(const Vocabulary& vocabulary, const PairTable& pairs) {
  for (const TokenId id : pairs.results()) {
    if (id == kNoToken) {
      continue;
    }
    const std::string_view piece = vocabulary.piece(id);
    Utf8Step step = decode_utf8(piece, 0);
    CharClass left = class_of(step.code_point);
    for (auto at = static_cast<size_t>(step.length); at < piece.size();
         at += static_cast<size_t>(step.length)) {
      step = decode_utf8(piece, at);
      const CharClass right = class_of(step.code_point);
      joined_[left][right] = true;
      left = right;
    }
  }
}

}  // namespace octet
