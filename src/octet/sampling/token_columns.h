// Which token each column of a row of logits stands for. A target's row has a column for every
// token; a drafter that looks at a shortlist of the vocabulary has fewer. Not a copy: the list
// belongs to the drafter and outlives its rows. Invariant: tokens ascend, so the lowest column is
// the lowest id and ties break alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "octet/base/token.h"

namespace octet {

class TokenColumns {
 public:
  /// Column i is token i.
  TokenColumns() = default;
  /// Column i is tokens[i]; `tokens` ascends. Empty: column i is token i.
  explicit TokenColumns(std::span<const TokenId> tokens) : tokens_(tokens) {}

  TokenId token(int64_t column) const {
    return tokens_.empty() ? static_cast<TokenId>(column) : tokens_[static_cast<size_t>(column)];
  }

  /// -1 when no column stands for `token`. Without a list every token has one.
  int64_t column(TokenId token) const {
    if (tokens_.empty()) {
      return token;
    }
    const auto at = std::lower_bound(tokens_.begin(), tokens_.end(), token);
    return at != tokens_.end() && *at == token ? at - tokens_.begin() : -1;
  }

 private:
  std::span<const TokenId> tokens_;
};

}  // namespace octet
