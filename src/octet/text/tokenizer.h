// The Gemma 4 tokenizer: text to token ids and back. BPE by merge rank over raw UTF-8 with U+2581
// for space and byte tokens for characters that have no piece. Not for chat grammar (octet/chat)
// and not for streams (stream_decoder.h). Invariants: decode(encode(x)) == x for every byte string
// x, except that U+2581 comes back as a space (the vocabulary has one piece for both); untrusted
// text never becomes a control token. Time is linear in practice: text is cut wherever no piece of
// the vocabulary could reach across.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/tokenizer_source.h"
#include "octet/text/vocabulary.h"

namespace octet {

/// What spelled-out control tokens such as "<|turn>" mean in a text.
enum class SpecialTokens {
  kPlain,  // characters like any other: for text of users, tools and files
  kParse,  // control tokens, longest match at the leftmost place: for text of templates only
};

struct TextSpan {
  std::string text;
  SpecialTokens special_tokens = SpecialTokens::kPlain;
};

/// The control tokens that the chat grammar needs; kNoToken where the vocabulary has none.
struct ChatTokens {
  TokenId think = kNoToken;
  TokenId turn_open = kNoToken;
  TokenId turn_close = kNoToken;
  TokenId channel_open = kNoToken;
  TokenId channel_close = kNoToken;
  TokenId tool_call_open = kNoToken;
  TokenId tool_call_close = kNoToken;
  TokenId tool_response_open = kNoToken;
  TokenId tool_response_close = kNoToken;
  TokenId quote = kNoToken;
};

inline constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

class Tokenizer {
 public:
  /// Throws Error(kMalformed) naming the piece, merge or id that is wrong.
  explicit Tokenizer(const TokenizerSource& source);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Ids of the text; no BOS is added. Bytes that are not valid UTF-8 become byte tokens.
  /// Throws Error(kInvalidArgument) when the text is longer than kMaxTextBytes.
  std::vector<TokenId> encode(std::string_view text, SpecialTokens special_tokens) const;

  /// Ids of the spans as one text: pieces may join across a border between spans, control tokens
  /// are only recognised inside trusted text (adjacent trusted spans count as one).
  std::vector<TokenId> encode_spans(std::span<const TextSpan> spans) const;

  /// Exactly one BOS at the start, whether or not `ids` began with it.
  std::vector<TokenId> with_bos(std::vector<TokenId> ids) const;

  /// The bytes of the tokens, control tokens spelled out. May be invalid UTF-8 when the ids are
  /// arbitrary (base/utf8.h repairs). Throws Error(kInvalidArgument) for an id that is not in the
  /// vocabulary.
  std::string decode(std::span<const TokenId> ids) const;

  /// Bytes that one token stands for: U+2581 is a space here, "<0x0A>" one byte, a control token
  /// its spelling. Valid as long as the tokenizer. Throws Error(kInvalidArgument) for an id that is
  /// not in the vocabulary.
  std::string_view bytes(TokenId id) const;
  /// The piece as stored in the file.
  std::string_view piece(TokenId id) const;

  /// Id of the token whose stored piece is exactly `piece`; kNoToken when there is none.
  TokenId find(std::string_view piece) const;

  int64_t vocabulary_size() const;
  bool is_control(TokenId id) const;

  TokenId bos() const { return bos_; }
  /// Tokens that end a reply, ascending: every one of them must stop generation.
  std::span<const TokenId> stop_ids() const { return stop_ids_; }
  bool is_stop(TokenId id) const;
  /// Tokens that the file asks never to sample, ascending.
  std::span<const TokenId> suppressed_ids() const { return suppressed_ids_; }
  const ChatTokens& chat_tokens() const { return chat_tokens_; }

 private:
  class Encoder;
  struct Tables;

  void check_id(TokenId id) const;

  std::unique_ptr<const Tables> tables_;
  TokenId bos_ = kNoToken;
  std::vector<TokenId> stop_ids_;
  std::vector<TokenId> suppressed_ids_;
  ChatTokens chat_tokens_;
};

}  // namespace octet
