#include "octet/grammar/token_table.h"

#include <algorithm>

#include "octet/base/utf8.h"

namespace octet {
namespace {

constexpr size_t kMaxClasses = 64;

size_t common_prefix(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(
      a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin()
  );
  return static_cast<size_t>(end.first - a.begin());
}

bool inside_class(std::string_view bytes, const CharacterClass& set) {
  return std::all_of(bytes.begin(), bytes.end(), [&](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte < 0x80 ? set.ascii[byte] : set.others;
  });
}

}  // namespace

TokenTable::TokenTable(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  const auto size = static_cast<TokenId>(tokenizer_->vocabulary_size());
  words_ = (static_cast<size_t>(size) + 63) / 64;
  for (TokenId token = 0; token < size; ++token) {
    const std::string_view bytes = tokenizer_->bytes(token);
    if (!tokenizer_->is_control(token) && !tokenizer_->is_stop(token) && !bytes.empty()) {
      texts_.push_back({.bytes = bytes, .token = token, .whole = is_valid_utf8(bytes)});
    }
  }
  std::sort(texts_.begin(), texts_.end(), [](const TokenText& a, const TokenText& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.token < b.token;
  });
  tree_ = tree_of(texts_);
}

TokenTree TokenTable::tree_of(std::span<const TokenText> texts) {
  TokenTree tree;
  std::vector<size_t> open;  // nodes from the root to the last text's end
  std::string_view last;
  const auto close_to = [&](size_t depth) {
    while (open.size() > depth) {
      tree.nodes[open.back()].skip = static_cast<int32_t>(tree.nodes.size());
      open.pop_back();
    }
  };
  for (const TokenText& text : texts) {
    close_to(common_prefix(last, text.bytes));
    for (size_t depth = open.size(); depth < text.bytes.size(); ++depth) {
      open.push_back(tree.nodes.size());
      tree.nodes.push_back(
          {.byte = static_cast<uint8_t>(text.bytes[depth]),
           .depth = static_cast<uint16_t>(depth),
           .skip = 0,
           .first_token = static_cast<int32_t>(tree.tokens.size())}
      );
      tree.max_depth = std::max(tree.max_depth, static_cast<int>(depth) + 1);
    }
    tree.tokens.push_back(text.token);
    last = text.bytes;
  }
  close_to(0);
  tree.nodes.push_back({.skip = 0, .first_token = static_cast<int32_t>(tree.tokens.size())});
  return tree;
}

std::shared_ptr<const ClassTokens> TokenTable::class_tokens(const CharacterClass& set) const {
  const std::string key = set.ascii.to_string() + (set.others ? "+" : "-");
  const std::lock_guard lock(mutex_);
  if (const auto known = classes_.find(key); known != classes_.end()) {
    return known->second;
  }
  auto out = std::make_shared<ClassTokens>();
  out->inside.resize(words_);
  std::vector<TokenText> rest;
  for (const TokenText& text : texts_) {
    if (text.whole && inside_class(text.bytes, set)) {
      const auto token = static_cast<size_t>(text.token);
      out->inside[token / 64] |= uint64_t{1} << (token % 64);
    } else {
      rest.push_back(text);
    }
  }
  out->outside = tree_of(rest);
  if (classes_.size() >= kMaxClasses) {
    classes_.clear();
  }
  classes_.emplace(key, out);
  return out;
}

}  // namespace octet
