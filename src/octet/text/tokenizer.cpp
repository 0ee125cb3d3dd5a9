#include "octet/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/text/bpe_merger.h"
#include "octet/text/cut_rule.h"
#include "octet/text/pair_table.h"

namespace octet {

struct Tokenizer::Tables {
  explicit Tables(const TokenizerSource& source)
      : vocabulary(source.pieces, source.declared_special),
        pairs(vocabulary, source.merges),
        cuts(vocabulary, pairs) {
    for (size_t byte = 0; byte < ascii_symbols.size(); ++byte) {
      const char character = static_cast<char>(byte);
      ascii_symbols[byte] =
          character == ' ' ? vocabulary.find(kSpaceSymbol) : vocabulary.find({&character, 1});
    }
    for (const TokenId id : vocabulary.control_tokens()) {
      control_starts[static_cast<uint8_t>(vocabulary.piece(id).front())] = true;
    }
  }

  /// The control token that text[at...] begins with, longest first; kNoToken when none.
  TokenId control_at(std::string_view text, size_t at) const {
    for (const TokenId id : vocabulary.control_tokens()) {
      if (text.substr(at).starts_with(vocabulary.piece(id))) {
        return id;
      }
    }
    return kNoToken;
  }

  Vocabulary vocabulary;
  PairTable pairs;
  CutRule cuts;
  std::array<TokenId, 128> ascii_symbols{};  // kNoToken where a character has no piece
  std::array<bool, 256> control_starts{};    // first bytes of control tokens
};

/// One encode call: turns runs of ordinary text into ids.
class Tokenizer::Encoder {
  /// Above this, memory for symbols grows as it is needed.
  static constexpr size_t kMaxReservedSymbols = size_t{1} << 24;

 public:
  explicit Encoder(const Tables& tables) : tables_(tables), merger_(tables.pairs) {}

  void add_control(TokenId id) { ids_.push_back(id); }

  /// A run of ordinary text that is complete on both sides: nothing joins across its ends.
  void add_run(std::string_view run) {
    symbols_.reserve(std::min(run.size(), kMaxReservedSymbols));
    for (size_t at = 0; at < run.size();) {
      const auto byte = static_cast<uint8_t>(run[at]);
      if (byte < 0x80) {
        const char32_t code_point = byte == ' ' ? kSpaceCodePoint : byte;
        add_character(tables_.ascii_symbols[byte], code_point, run.substr(at, 1));
        ++at;
        continue;
      }
      const Utf8Step step = decode_utf8(run, at);
      const std::string_view character = run.substr(at, static_cast<size_t>(step.length));
      const bool valid = step.status == Utf8Status::kValid;
      add_character(
          valid ? tables_.vocabulary.find(character) : kNoToken, step.code_point, character
      );
      at += character.size();
    }
    flush();
  }

  /// Trusted text: control tokens, and between them whatever `add_plain` does with it.
  template <typename AddPlain, typename AddControl>
  static void split(
      const Tables& tables, std::string_view text, AddPlain add_plain, AddControl add_control
  ) {
    size_t begin = 0;
    for (size_t at = 0; at < text.size();) {
      const bool may_start = tables.control_starts[static_cast<uint8_t>(text[at])];
      const TokenId id = may_start ? tables.control_at(text, at) : kNoToken;
      if (id == kNoToken) {
        ++at;
        continue;
      }
      add_plain(text.substr(begin, at - begin));
      add_control(id);
      at += tables.vocabulary.piece(id).size();
      begin = at;
    }
    add_plain(text.substr(begin));
  }

  std::vector<TokenId> take() { return std::move(ids_); }

 private:
  void add_character(TokenId symbol, char32_t code_point, std::string_view utf8) {
    if (symbol == kNoToken) {
      flush();
      for (const char byte : utf8) {
        ids_.push_back(tables_.vocabulary.byte_token(static_cast<uint8_t>(byte)));
      }
      return;
    }
    const CutRule::CharClass char_class = CutRule::class_of(code_point);
    if (!symbols_.empty() && tables_.cuts.may_cut(last_class_, char_class)) {
      flush();
    }
    symbols_.push_back(symbol);
    last_class_ = char_class;
  }

  void flush() {
    merger_.merge(symbols_, ids_);
    symbols_.clear();
  }

  const Tables& tables_;
  BpeMerger merger_;
  std::vector<TokenId> symbols_;       // characters since the last cut
  CutRule::CharClass last_class_ = 0;  // of the last of them
  std::vector<TokenId> ids_;
};

namespace {

void check_length(size_t bytes) {
  if (static_cast<int64_t>(bytes) > kMaxTextBytes) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("the text has {} bytes, more than the limit of {}", bytes, kMaxTextBytes)
    );
  }
}

std::vector<TokenId> sorted_ids(
    const Vocabulary& vocabulary, std::span<const int64_t> ids, std::string_view what
) {
  std::vector<TokenId> sorted;
  for (const int64_t id : ids) {
    if (!vocabulary.contains(id)) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "{} token id {} is outside the vocabulary of {} pieces", what, id, vocabulary.size()
          )
      );
    }
    sorted.push_back(static_cast<TokenId>(id));
  }
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

TokenId find_bos(const Vocabulary& vocabulary, int64_t declared) {
  const TokenId by_text = vocabulary.find("<bos>");
  if (by_text != kNoToken) {
    return by_text;
  }
  if (!vocabulary.contains(declared)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "the vocabulary has no piece <bos> and the declared BOS id {} is not in it", declared
        )
    );
  }
  return static_cast<TokenId>(declared);
}

}  // namespace

Tokenizer::Tokenizer(const TokenizerSource& source)
    : tables_(std::make_unique<const Tables>(source)) {
  const Vocabulary& vocabulary = tables_->vocabulary;
  bos_ = find_bos(vocabulary, source.bos);
  std::vector<int64_t> stops = source.stop_ids;
  for (const std::string_view text : {"<eos>", "<turn|>", "<|tool_response>"}) {
    if (const TokenId id = vocabulary.find(text); id != kNoToken) {
      stops.push_back(id);
    }
  }
  stop_ids_ = sorted_ids(vocabulary, stops, "end-of-text");
  suppressed_ids_ = sorted_ids(vocabulary, source.suppressed_ids, "suppressed");
  chat_tokens_ = {
      .think = vocabulary.find("<|think|>"),
      .turn_open = vocabulary.find("<|turn>"),
      .turn_close = vocabulary.find("<turn|>"),
      .channel_open = vocabulary.find("<|channel>"),
      .channel_close = vocabulary.find("<channel|>"),
      .tool_call_open = vocabulary.find("<|tool_call>"),
      .tool_call_close = vocabulary.find("<tool_call|>"),
      .tool_response_open = vocabulary.find("<|tool_response>"),
      .tool_response_close = vocabulary.find("<tool_response|>"),
      .quote = vocabulary.find("<|\"|>")};
}

Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens special_tokens) const {
  check_length(text.size());
  Encoder encoder(*tables_);
  if (special_tokens == SpecialTokens::kPlain) {
    encoder.add_run(text);
  } else {
    Encoder::split(
        *tables_,
        text,
        [&](std::string_view plain) { encoder.add_run(plain); },
        [&](TokenId id) { encoder.add_control(id); }
    );
  }
  return encoder.take();
}

std::vector<TokenId> Tokenizer::encode_spans(std::span<const TextSpan> spans) const {
  size_t total_bytes = 0;
  for (const TextSpan& span : spans) {
    total_bytes += span.text.size();
    check_length(total_bytes);
  }
  Encoder encoder(*tables_);
  std::string run;  // ordinary text since the last control token, across spans
  const auto add_plain = [&](std::string_view plain) { run.append(plain); };
  const auto add_control = [&](TokenId id) {
    encoder.add_run(run);
    run.clear();
    encoder.add_control(id);
  };
  std::string trusted;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (spans[i].special_tokens == SpecialTokens::kPlain) {
      add_plain(spans[i].text);
      continue;
    }
    trusted.clear();
    for (; i < spans.size() && spans[i].special_tokens == SpecialTokens::kParse; ++i) {
      trusted.append(spans[i].text);
    }
    --i;
    Encoder::split(*tables_, trusted, add_plain, add_control);
  }
  encoder.add_run(run);
  return encoder.take();
}

std::vector<TokenId> Tokenizer::with_bos(std::vector<TokenId> ids) const {
  const auto first =
      std::find_if(ids.begin(), ids.end(), [this](TokenId id) { return id != bos_; });
  ids.erase(ids.begin(), first);
  ids.insert(ids.begin(), bos_);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    text.append(bytes(id));
  }
  return text;
}

std::string_view Tokenizer::bytes(TokenId id) const {
  check_id(id);
  return tables_->vocabulary.bytes(id);
}

std::string_view Tokenizer::piece(TokenId id) const {
  check_id(id);
  return tables_->vocabulary.piece(id);
}

TokenId Tokenizer::find(std::string_view piece) const {
  return tables_->vocabulary.find(piece);
}

int64_t Tokenizer::vocabulary_size() const {
  return tables_->vocabulary.size();
}

bool Tokenizer::is_control(TokenId id) const {
  check_id(id);
  return tables_->vocabulary.is_control(id);
}

bool Tokenizer::is_stop(TokenId id) const {
  return std::binary_search(stop_ids_.begin(), stop_ids_.end(), id);
}

void Tokenizer::check_id(TokenId id) const {
  if (!tables_->vocabulary.contains(id)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("token id {} is outside the vocabulary of {} pieces", id, vocabulary_size())
    );
  }
}

}  // namespace octet
