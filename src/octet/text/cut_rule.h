// Where a text may be cut before merging without changing the result: between two characters that
// no merged piece of the vocabulary holds side by side. Newlines and the space before a word are
// such places in the known vocabularies, but this is computed from the merges, not assumed.
// Characters beyond ASCII share one class, which only makes cuts rarer.
#pragma once

#include <array>
#include <cstdint>

#include "octet/text/pair_table.h"
#include "octet/text/vocabulary.h"

namespace octet {

class CutRule {
 public:
  using CharClass = uint8_t;  // ASCII characters are their own class

  CutRule(const Vocabulary& vocabulary, const PairTable& pairs);

  static CharClass class_of(char32_t code_point) {
    return static_cast<CharClass>(
        code_point < 0x80               ? code_point
        : code_point == kSpaceCodePoint ? kSpaceClass
                                        : kOtherClass
    );
  }
  bool may_cut(CharClass left, CharClass right) const { return !joined_[left][right]; }

 private:
  static constexpr CharClass kSpaceClass = 0x80;
  static constexpr CharClass kOtherClass = 0x81;
  static constexpr size_t kClasses = 0x82;

  std::array<std::array<bool, kClasses>, kClasses> joined_{};
};

}  // namespace octet
