#include "octet/train/training_text.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/philox.h"
#include "octet/base/utf8.h"
#include "octet/evaluate/digest.h"
#include "octet/formats/json_value.h"

namespace octet::train {
namespace {

// Longer than any text that fits a context; a file of another kind often has no line ends.
constexpr size_t kMostLineBytes = 16 << 20;
constexpr uint32_t kOrderPurpose = 0x0DE2;

[[noreturn]] void malformed(std::string why) {
  throw Error(ErrorKind::kMalformed, std::move(why));
}

[[noreturn]] void other_vocabulary(size_t place, const std::string& found, int64_t vocabulary) {
  malformed(fmt::format(
      "token {} is {}, expected an id below {}: the text is of another vocabulary",
      place,
      found,
      vocabulary
  ));
}

std::vector<TokenId> listed_tokens(const JsonArray& list, int64_t vocabulary) {
  std::vector<TokenId> tokens;
  tokens.reserve(list.size());
  for (const JsonValue& value : list) {
    const auto id = value.integer();
    if (!id || *id < 0 || *id >= vocabulary) {
      other_vocabulary(
          tokens.size(), id ? fmt::format("{}", *id) : std::string(value.type_name()), vocabulary
      );
    }
    tokens.push_back(static_cast<TokenId>(*id));
  }
  return tokens;
}

TrainingText parse_text(
    const std::string& line, const TextRules& rules, const Tokenizer* tokenizer
) {
  constexpr const char* kExpected =
      "expected an object with \"tokens\", a list of ids, or \"text\"";
  if (line.size() > kMostLineBytes) {
    malformed(fmt::format("has {} bytes, expected at most {}", line.size(), kMostLineBytes));
  }
  if (!is_valid_utf8(line)) {
    malformed("is not UTF-8");
  }
  const JsonValue object = parse_json(std::as_bytes(std::span(line)));
  if (object.object() == nullptr) {
    malformed(kExpected);
  }
  TrainingText text;
  if (const JsonArray* list = object.find_array("tokens")) {
    text.tokens = listed_tokens(*list, rules.vocabulary);
    text.first_learned = object.find_integer("prompt_tokens").value_or(0);
  } else if (const std::string* spelled = object.find_string("text"); spelled && tokenizer) {
    text.tokens = tokenizer->with_bos(tokenizer->encode(*spelled, SpecialTokens::kParse));
  } else if (const std::string* error = object.find_string("error")) {
    malformed(fmt::format("a prompt without a reply: {}", *error));
  } else {
    malformed(kExpected);
  }
  check_text(text, rules);
  return text;
}

}  // namespace

void check_text(TrainingText& text, const TextRules& rules) {
  const int64_t count = std::ssize(text.tokens);
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    if (text.tokens[i] < 0 || text.tokens[i] >= rules.vocabulary) {
      other_vocabulary(i, fmt::format("{}", text.tokens[i]), rules.vocabulary);
    }
  }
  if (text.first_learned < 0 || text.first_learned > count) {
    malformed(fmt::format(
        "\"prompt_tokens\" is {}, expected 0 to {}, the number of tokens", text.first_learned, count
    ));
  }
  text.first_learned = std::max<int64_t>(text.first_learned, 1);
  if (count > rules.most_tokens) {
    malformed(fmt::format(
        "has {} tokens, expected at most {} ({})", count, rules.most_tokens, rules.most_tokens_by
    ));
  }
  if (count - text.first_learned < rules.least_learned) {
    malformed(fmt::format(
        "has {} tokens to learn, expected at least {}",
        std::max<int64_t>(count - text.first_learned, 0),
        rules.least_learned
    ));
  }
}

int64_t TrainingTexts::tokens() const {
  int64_t count = 0;
  for (const TrainingText& text : texts) {
    count += std::ssize(text.tokens);
  }
  return count;
}

void read_training_texts(
    const std::string& path,
    const TextRules& rules,
    const Tokenizer* tokenizer,
    TrainingTexts& result
) {
  std::ifstream file(path);
  if (!file) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{}: cannot be opened; expected a readable file of texts", path)
    );
  }
  const size_t before = result.texts.size();
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    try {
      result.texts.push_back(parse_text(line, rules, tokenizer));
    } catch (Error& error) {
      if (rules.bad == BadLines::kRefuse) {
        error.add_context(fmt::format("{}, line {}", path, number));
        throw;
      }
      result.skipped.push_back({path, number, error.what()});
    }
  }
  if (result.texts.size() == before) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{}: holds no text to train on, expected one JSON object a line", path)
    );
  }
}

std::vector<TrainingText> packed_texts(const TrainingTexts& texts, int64_t length) {
  std::vector<TrainingText> pieces;
  TrainingText piece;
  for (const TrainingText& text : texts.texts) {
    for (const TokenId token : text.tokens) {
      piece.tokens.push_back(token);
      if (std::ssize(piece.tokens) == length) {
        pieces.push_back(std::exchange(piece, {}));
      }
    }
  }
  return pieces;
}

namespace {

/// A control text of turns in tokens.
class Mark {
 public:
  Mark(const Tokenizer& tokenizer, std::string_view text)
      : tokens_(tokenizer.encode(text, SpecialTokens::kParse)) {}

  size_t size() const { return tokens_.size(); }
  bool stands_at(std::span<const TokenId> text, size_t at) const {
    const auto rest = text.subspan(at);
    return rest.size() >= size() && std::equal(tokens_.begin(), tokens_.end(), rest.begin());
  }

 private:
  std::vector<TokenId> tokens_;
};

constexpr std::string_view kReplyBegins = "<|turn>model\n";

}  // namespace

int64_t first_reply(std::span<const TokenId> tokens, const Tokenizer& tokenizer) {
  const Mark begin(tokenizer, kReplyBegins);
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (begin.stands_at(tokens, at)) {
      return static_cast<int64_t>(at + begin.size());
    }
  }
  return 0;
}

void learn_replies_only(std::span<TrainingText> texts, const Tokenizer& tokenizer) {
  const Mark begin(tokenizer, kReplyBegins);
  const Mark end(tokenizer, "<turn|>");
  const Mark response(tokenizer, "<|tool_response>");
  const Mark response_end(tokenizer, "<tool_response|>");
  for (TrainingText& text : texts) {
    std::vector<bool> reply(text.tokens.size(), false);
    bool inside = false;    // a turn of the model
    bool answered = false;  // there, by a tool
    for (size_t at = 0; at < text.tokens.size(); ++at) {
      if (!inside) {
        inside = begin.stands_at(text.tokens, at);
        at += inside ? begin.size() - 1 : 0;
        continue;
      }
      reply[at] = !answered;
      answered = (answered || response.stands_at(text.tokens, at)) &&
                 !response_end.stands_at(text.tokens, at);
      inside = !end.stands_at(text.tokens, at);
    }
    // Unless nothing were left to learn: an anchor and the token behind it.
    const auto learned = reply.begin() + text.first_learned;
    if (std::adjacent_find(learned, reply.end(), std::logical_and<>()) != reply.end()) {
      text.reply = std::move(reply);
    }
  }
}

uint64_t texts_digest(std::span<const TrainingText> texts) {
  Digest digest;
  for (const TrainingText& text : texts) {
    digest.add(text.first_learned);
    for (const TokenId token : text.tokens) {
      digest.add(token);
    }
    digest.add(int64_t{-1});
  }
  return digest.value();
}

SampleOrder::SampleOrder(int64_t texts, uint64_t seed) : texts_(texts), seed_(seed) {
  OCTET_CHECK(texts > 0);
}

int64_t SampleOrder::text(int64_t sample) const {
  if (epoch(sample) != shuffled_epoch_) {
    shuffle(epoch(sample));
  }
  return order_[static_cast<size_t>(sample % texts_)];
}

/// Texts in the order of a random number each.
void SampleOrder::shuffle(int64_t epoch) const {
  std::vector<uint64_t> numbers;
  for (int64_t i = 0; i < texts_; ++i) {
    numbers.push_back(philox_words(seed_, epoch, kOrderPurpose, static_cast<uint32_t>(i))[0]);
  }
  order_.resize(static_cast<size_t>(texts_));
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
    return numbers[static_cast<size_t>(a)] < numbers[static_cast<size_t>(b)];
  });
  shuffled_epoch_ = epoch;
}

}  // namespace octet::train
