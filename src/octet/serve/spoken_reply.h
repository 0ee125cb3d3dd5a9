// Which tokens of a reply said what, for a listener who interrupts it: how much to keep when only
// so many characters were heard. Knows nothing of voices or time. Invariant: the text kept is a
// beginning of the speech, and ends where a token ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/tokenizer.h"

namespace octet::serve {

class SpokenReply {
 public:
  explicit SpokenReply(std::vector<TokenId> prompt)
      : prompt_tokens_(std::ssize(prompt)), text_(std::move(prompt)) {}

  /// The next token of the reply, and the speech that became certain with it, whole characters.
  void add(TokenId token, std::string_view speech);
  /// Speech that was held back until the reply's end.
  void add_rest(std::string_view speech);

  struct Kept {
    std::string text;        // of the speech
    int64_t characters = 0;  // of it
    int64_t tokens = 0;      // of prompt and reply
  };
  /// The most that ends at or before so many characters of the speech. Prefers an end from which a
  /// history with exactly this text has these tokens again, and one without white space before it.
  Kept up_to(int64_t characters, const Tokenizer& tokenizer) const;

  /// Prompt and reply.
  const std::vector<TokenId>& text() const { return text_; }

 private:
  /// After a token of the reply.
  struct Border {
    int64_t characters = 0;
    size_t bytes = 0;
  };

  bool returns(size_t tokens, std::string_view speech, const Tokenizer& tokenizer) const;

  int64_t prompt_tokens_;
  std::vector<TokenId> text_;
  std::string speech_;
  std::vector<Border> borders_ = {{}};  // by number of tokens
};

}  // namespace octet::serve
