#include "octet/text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"

namespace octet {
namespace {

/// The control tokens of Gemma 4, whatever type a file gives them and whatever id they have.
constexpr std::string_view kGemma4Controls[] = {
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<mask>",
    "<|tool>",
    "<tool|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|\"|>",
    "<|think|>",
    "<|channel>",
    "<channel|>",
    "<|turn>",
    "<turn|>",
    "<|image>",
    "<image|>",
    "<|image|>",
    "<|audio>",
    "<audio|>",
    "<|audio|>",
    "<|video|>",
};

/// <|x>, <x|> or <|x|>: nothing that text contains by chance.
bool has_bracket_form(std::string_view text) {
  if (text.size() < 4 || text.front() != '<' || text.back() != '>') {
    return false;
  }
  return text[1] == '|' || text[text.size() - 2] == '|';
}

/// Any good hash will do: it never influences results.
uint64_t hash_of(std::string_view text) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t hash = text.size();
  while (!text.empty()) {
    uint64_t word = 0;
    const size_t count = std::min(text.size(), sizeof(word));
    std::memcpy(&word, text.data(), count);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 32;
    text.remove_prefix(count);
  }
  return (hash * kMultiplier) ^ (hash >> 29);
}

}  // namespace

Vocabulary::Vocabulary(
    std::span<const std::string_view> pieces, std::span<const TokenId> declared_special
) {
  add_pieces(pieces);
  index_pieces();
  find_byte_tokens();
  classify(declared_special);
  spell_out();
}

void Vocabulary::add_pieces(std::span<const std::string_view> pieces) {
  if (pieces.empty() || static_cast<int64_t>(pieces.size()) > kMaxPieces) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("the vocabulary has {} pieces, expected 1 to {}", pieces.size(), kMaxPieces)
    );
  }
  size_t total_bytes = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view piece = pieces[id];
    if (piece.empty() || piece.size() > kMaxPieceBytes) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("token {} has {} bytes, expected 1 to {}", id, piece.size(), kMaxPieceBytes)
      );
    }
    if (!is_valid_utf8(piece)) {
      throw Error(ErrorKind::kMalformed, fmt::format("token {} is not valid UTF-8", id));
    }
    total_bytes += piece.size();
  }
  pieces_.reserve(pieces.size(), total_bytes);
  for (const std::string_view piece : pieces) {
    pieces_.add(piece);
  }
  kinds_.assign(pieces.size(), Kind::kText);
}

void Vocabulary::index_pieces() {
  slots_.assign(std::bit_ceil(pieces_.size() * 2), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < pieces_.size(); ++id) {
    const uint64_t hash = hash_of(pieces_[id]);
    size_t slot = hash & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
      const uint64_t other = (slots_[slot] & 0xFFFFFFFF) - 1;
      if (slots_[slot] >> 32 == hash >> 32 && pieces_[other] == pieces_[id]) {
        throw Error(
            ErrorKind::kMalformed,
            fmt::format("tokens {} and {} have the same text \"{}\"", other, id, pieces_[id])
        );
      }
    }
    slots_[slot] = (hash & ~uint64_t{0xFFFFFFFF}) | (id + 1);
  }
}

TokenId Vocabulary::find(std::string_view piece) const {
  return find(piece, hash_of(piece));
}

TokenId Vocabulary::find(std::string_view piece, uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const uint64_t id = (slots_[slot] & 0xFFFFFFFF) - 1;
    if (slots_[slot] >> 32 == hash >> 32 && pieces_[id] == piece) {
      return static_cast<TokenId>(id);
    }
  }
  return kNoToken;
}

void Vocabulary::find_all(std::span<const std::string_view> pieces, std::span<TokenId> ids) const {
  constexpr size_t kBlock = 64;
  std::array<uint64_t, kBlock> hashes{};
  const size_t mask = slots_.size() - 1;
  for (size_t begin = 0; begin < pieces.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, pieces.size() - begin);
    const std::span<const std::string_view> block = pieces.subspan(begin, count);
    for (size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(block[i]);
      __builtin_prefetch(&slots_[hashes[i] & mask]);
    }
    // Nearly always the first slot is the right one; where it is not, the prefetch was for nothing.
    const auto guess = [&](size_t i) {
      const uint64_t slot = slots_[hashes[i] & mask] & 0xFFFFFFFF;
      return static_cast<size_t>(slot == 0 ? 0 : slot - 1);
    };
    for (size_t i = 0; i < count; ++i) {
      pieces_.prefetch_place(guess(i));
    }
    for (size_t i = 0; i < count; ++i) {
      pieces_.prefetch_bytes(guess(i));
    }
    for (size_t i = 0; i < count; ++i) {
      ids[begin + i] = find(block[i], hashes[i]);
    }
  }
}

void Vocabulary::find_byte_tokens() {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = fmt::format("<0x{:02X}>", byte);
    const TokenId id = find(text);
    if (id == kNoToken) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "the vocabulary has no byte token {}; all 256 are needed for text without pieces",
              text
          )
      );
    }
    byte_tokens_[static_cast<size_t>(byte)] = id;
    kinds_[static_cast<size_t>(id)] = Kind::kByte;
  }
}

void Vocabulary::classify(std::span<const TokenId> declared_special) {
  const auto add = [this](TokenId id) {
    Kind& kind = kinds_[static_cast<size_t>(id)];
    if (kind == Kind::kText) {
      kind = Kind::kControl;
      control_tokens_.push_back(id);
    }
  };
  for (const std::string_view text : kGemma4Controls) {
    const TokenId id = find(text);
    if (id != kNoToken) {
      add(id);
    }
  }
  for (const TokenId id : declared_special) {
    if (!contains(id)) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("special token id {} is outside the vocabulary of {} pieces", id, size())
      );
    }
    if (has_bracket_form(piece(id))) {
      add(id);
    }
  }
  std::stable_sort(control_tokens_.begin(), control_tokens_.end(), [this](TokenId a, TokenId b) {
    return piece(a).size() > piece(b).size();
  });
}

void Vocabulary::spell_out() {
  std::string byte_by_id(pieces_.size(), '\0');
  for (int byte = 0; byte < 256; ++byte) {
    byte_by_id[static_cast<size_t>(byte_token(static_cast<uint8_t>(byte)))] =
        static_cast<char>(byte);
  }
  bytes_.reserve(pieces_.size(), 0);
  std::string text;
  for (size_t id = 0; id < pieces_.size(); ++id) {
    if (kinds_[id] == Kind::kByte) {
      bytes_.add(std::string_view(byte_by_id).substr(id, 1));
      continue;
    }
    text.clear();
    std::string_view rest = pieces_[id];
    for (size_t at = rest.find(kSpaceSymbol); at != std::string_view::npos;
         at = rest.find(kSpaceSymbol)) {
      text.append(rest.substr(0, at)).push_back(' ');
      rest.remove_prefix(at + kSpaceSymbol.size());
    }
    bytes_.add(text.append(rest));
  }
}

}  // namespace octet
