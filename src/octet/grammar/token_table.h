// The vocabulary as grammars need it: all text tokens in one tree of bytes, so that tokens with a
// common start are judged together. Built once per tokenizer. Not for control tokens, which
// grammars name by id. Invariant: the tree holds every text and byte token exactly once.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "octet/text/tokenizer.h"

namespace octet {

/// Tokens in the order of their bytes: a node's children follow it, deeper by one.
struct TokenTree {
  struct Node {
    uint8_t byte = 0;
    uint16_t depth = 0;       // bytes before it
    int32_t skip = 0;         // the next node that is not below this one
    int32_t first_token = 0;  // its tokens: up to the first_token of the next node
  };
  std::vector<Node> nodes;  // the last one only ends the tokens of the one before
  std::vector<TokenId> tokens;
  int max_depth = 0;
};

/// A class of characters: some of ASCII, and all others or none.
struct CharacterClass {
  std::bitset<128> ascii;
  bool others = false;
};

/// What a class says about the vocabulary: tokens of its characters alone, and the tree of the
/// rest.
struct ClassTokens {
  std::vector<uint64_t> inside;  // bit t: token t
  TokenTree outside;
};

class TokenTable {
 public:
  explicit TokenTable(std::shared_ptr<const Tokenizer> tokenizer);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::shared_ptr<const Tokenizer>& shared_tokenizer() const { return tokenizer_; }
  const TokenTree& tree() const { return tree_; }
  size_t words() const { return words_; }
  /// Remembered; safe to call from several threads.
  std::shared_ptr<const ClassTokens> class_tokens(const CharacterClass& set) const;

 private:
  struct TokenText {
    std::string_view bytes;
    TokenId token = 0;
    bool whole = false;  // whole characters
  };
  static TokenTree tree_of(std::span<const TokenText> texts);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<TokenText> texts_;  // by bytes
  TokenTree tree_;
  size_t words_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::shared_ptr<const ClassTokens>> classes_;
};

}  // namespace octet
