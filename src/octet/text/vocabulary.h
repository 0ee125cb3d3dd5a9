// The pieces of a tokenizer and what each of them is: ordinary text, a byte, or a control token.
// Also finds the id of a piece. Not for merging (pair_table.h, bpe_merger.h). Invariants: ids are
// 0..size()-1, pieces are distinct, non-empty, valid UTF-8; all 256 byte tokens exist. Tokens are
// classified by their text, because the types that converters write differ from version to version.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/text/string_table.h"

namespace octet {

inline constexpr TokenId kNoToken = -1;

/// U+2581, which stands for a space inside pieces.
inline constexpr char32_t kSpaceCodePoint = 0x2581;
inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

/// Limits on files: 8 times the real vocabulary, and pieces of a sane length.
inline constexpr int64_t kMaxPieces = int64_t{1} << 21;
inline constexpr size_t kMaxPieceBytes = 1024;

class Vocabulary {
 public:
  /// `pieces[id]` is the text of token id, borrowed for the call only. `declared_special` lists ids
  /// that the file marks as special: they count only when their text has the bracket form <|x>,
  /// <x|> or <|x|>. Throws Error(kMalformed) naming the token: too many or no pieces, an empty,
  /// overlong, duplicate or non-UTF-8 piece, a missing byte token, an id out of range.
  Vocabulary(std::span<const std::string_view> pieces, std::span<const TokenId> declared_special);

  int64_t size() const { return static_cast<int64_t>(kinds_.size()); }
  bool contains(int64_t id) const { return id >= 0 && id < size(); }

  /// kNoToken when there is no such piece.
  TokenId find(std::string_view piece) const;
  /// The same for many pieces, several times faster: memory is asked for ahead. Sizes must be
  /// equal.
  void find_all(std::span<const std::string_view> pieces, std::span<TokenId> ids) const;

  // The following need an id that the vocabulary contains.

  /// The text as stored in the file: U+2581 for space, "<0x0A>" for a byte token.
  std::string_view piece(TokenId id) const { return pieces_[static_cast<size_t>(id)]; }
  /// The bytes that the token stands for in a text.
  std::string_view bytes(TokenId id) const { return bytes_[static_cast<size_t>(id)]; }
  bool is_text(TokenId id) const { return kinds_[static_cast<size_t>(id)] == Kind::kText; }
  bool is_byte(TokenId id) const { return kinds_[static_cast<size_t>(id)] == Kind::kByte; }
  bool is_control(TokenId id) const { return kinds_[static_cast<size_t>(id)] == Kind::kControl; }

  TokenId byte_token(uint8_t byte) const { return byte_tokens_[byte]; }
  /// Longest text first.
  std::span<const TokenId> control_tokens() const { return control_tokens_; }

 private:
  enum class Kind : uint8_t { kText, kByte, kControl };

  void add_pieces(std::span<const std::string_view> pieces);
  void index_pieces();
  void classify(std::span<const TokenId> declared_special);
  void find_byte_tokens();
  void spell_out();
  TokenId find(std::string_view piece, uint64_t hash) const;

  StringTable pieces_;
  StringTable bytes_;
  std::vector<Kind> kinds_;
  std::vector<uint64_t> slots_;  // open addressing: high half = hash, low half = id + 1; 0 = free
  std::array<TokenId, 256> byte_tokens_{};
  std::vector<TokenId> control_tokens_;
};

}  // namespace octet
