#include "octet/serve/spoken_reply.h"

#include <algorithm>
#include <optional>
#include <span>

namespace octet::serve {
namespace {

// How many borders before the best one are tried for a text that has the same tokens again.
constexpr int kTries = 16;

int64_t characters_of(std::string_view text) {
  return std::ranges::count_if(text, [](char c) {
    return (static_cast<uint8_t>(c) & 0xC0U) != 0x80U;
  });
}

}  // namespace

void SpokenReply::add(TokenId token, std::string_view speech) {
  text_.push_back(token);
  borders_.push_back(borders_.back());
  add_rest(speech);
}

void SpokenReply::add_rest(std::string_view speech) {
  speech_ += speech;
  borders_.back().characters += characters_of(speech);
  borders_.back().bytes = speech_.size();
}

/// Whether the speech, encoded again, is the last of so many tokens.
bool SpokenReply::returns(size_t tokens, std::string_view speech, const Tokenizer& tokenizer)
    const {
  const std::span<const TokenId> reply =
      std::span(text_).subspan(static_cast<size_t>(prompt_tokens_), tokens);
  const std::vector<TokenId> again = tokenizer.encode(speech, SpecialTokens::kPlain);
  return again.size() <= reply.size() && std::ranges::equal(again, reply.last(again.size()));
}

SpokenReply::Kept SpokenReply::up_to(int64_t characters, const Tokenizer& tokenizer) const {
  constexpr std::string_view kSpaces = " \t\r\n";
  std::optional<Kept> best;
  int tries = 0;
  for (size_t i = borders_.size(); i-- > 0 && tries < kTries;) {
    const Border& border = borders_[i];
    // Tokens that add no speech say nothing: half characters, ends, thoughts.
    const bool says = i == 0 || borders_[i - 1].characters < border.characters;
    if (border.characters > characters || !says) {
      continue;
    }
    ++tries;
    Kept kept{
        speech_.substr(0, border.bytes),
        border.characters,
        prompt_tokens_ + static_cast<int64_t>(i)};
    const bool spaced =
        !kept.text.empty() && kSpaces.find(kept.text.back()) != std::string_view::npos;
    if (!spaced && returns(i, kept.text, tokenizer)) {
      return kept;
    }
    if (!best) {
      best = std::move(kept);
    }
  }
  return best.value_or(Kept{"", 0, prompt_tokens_});
}

}  // namespace octet::serve
