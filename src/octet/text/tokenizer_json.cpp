#include "octet/text/tokenizer_json.h"

#include <simdjson.h>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

namespace ondemand = simdjson::ondemand;

struct TokenizerJson::Document {
  explicit Document(std::string_view json) : text(json) {}

  simdjson::padded_string text;
  ondemand::parser parser;  // strings without escapes live in here
};

namespace {

/// A hint for memory: the real file has 514,906.
constexpr size_t kExpectedMerges = 520'000;

[[noreturn]] void fail_malformed(
    std::string_view file, std::string_view place, std::string_view reason
) {
  throw Error(ErrorKind::kMalformed, fmt::format("{}, {}: {}", file, place, reason));
}

struct AddedToken {
  int64_t id = kNoToken;
  std::string_view text;
  bool special = false;
};

class TokenizerReader {
 public:
  explicit TokenizerReader(TokenizerSource& source) : source_(source) {}

  /// Where the reader is: for messages.
  const std::string& place() const { return place_; }

  void read(ondemand::document& document) {
    bool has_model = false;
    for (auto field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "added_tokens") {
        place_ = key;
        read_added_tokens(field.value());
      } else if (key == "model") {
        has_model = true;
        read_model(field.value());
      }
      place_ = "top level";
    }
    if (!has_model) {
      fail("there is no member \"model\"");
    }
    for (const AddedToken& token : added_tokens_) {
      apply(token);
    }
    place_ = "model.vocab";
    for (size_t id = 0; id < source_.pieces.size(); ++id) {
      if (source_.pieces[id].data() == nullptr) {
        fail(fmt::format("no token has the id {}, expected ids without gaps", id));
      }
    }
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const {
    fail_malformed("tokenizer.json", place_, reason);
  }

  void read_added_tokens(ondemand::value value) {
    for (auto element : value.get_array()) {
      AddedToken token;
      for (auto field : element.get_object()) {
        const std::string_view key = field.unescaped_key();
        if (key == "id") {
          token.id = field.value().get_int64();
        } else if (key == "content") {
          token.text = field.value().get_string();
        } else if (key == "special") {
          token.special = field.value().get_bool();
        }
      }
      added_tokens_.push_back(token);
    }
  }

  void read_model(ondemand::value value) {
    bool byte_fallback = false;
    for (auto field : value.get_object()) {
      const std::string_view key = field.unescaped_key();
      place_ = "model.";
      place_ += key;
      if (key == "type") {
        require_bpe(field.value().get_string());
      } else if (key == "byte_fallback") {
        byte_fallback = field.value().get_bool();
      } else if (key == "vocab") {
        read_vocabulary(field.value());
      } else if (key == "merges") {
        read_merges(field.value());
      }
    }
    if (!byte_fallback) {
      throw Error(
          ErrorKind::kUnsupported,
          "tokenizer.json, model.byte_fallback: not true, so this is not a tokenizer of the Gemma "
          "4 kind, the only one octet knows"
      );
    }
  }

  static void require_bpe(std::string_view type) {
    if (type != "BPE") {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("tokenizer.json, model.type: \"{}\", octet knows only \"BPE\"", type)
      );
    }
  }

  void read_vocabulary(ondemand::value value) {
    for (auto field : value.get_object()) {
      const std::string_view text = field.unescaped_key();
      std::string_view& piece = piece_at(field.value().get_int64());
      if (piece.data() != nullptr) {
        fail(fmt::format("\"{}\" and \"{}\" have the same id", piece, text));
      }
      piece = text;
    }
  }

  void read_merges(ondemand::value value) {
    source_.merges.reserve(kExpectedMerges);
    for (auto element : value.get_array()) {
      ondemand::value merge = element.value();
      const ondemand::json_type type = merge.type();
      if (type == ondemand::json_type::string) {
        source_.merges.push_back(split_merge(merge.get_string(), source_.merges.size()));
      } else {
        source_.merges.push_back(read_merge_pair(merge));
      }
    }
  }

  MergeText read_merge_pair(ondemand::value value) const {
    std::string_view halves[2];
    size_t count = 0;
    for (auto half : value.get_array()) {
      if (count < 2) {
        halves[count] = half.get_string();
      }
      ++count;
    }
    if (count != 2) {
      fail(fmt::format("merge {} has {} elements, expected 2", source_.merges.size(), count));
    }
    return {halves[0], halves[1]};
  }

  /// An added token usually repeats a piece of the vocabulary; where it differs, it replaces it.
  void apply(const AddedToken& token) {
    place_ = "added_tokens";
    piece_at(token.id) = token.text;
    if (token.special) {
      source_.declared_special.push_back(static_cast<TokenId>(token.id));
    }
  }

  std::string_view& piece_at(int64_t id) {
    if (id < 0 || id >= kMaxPieces) {
      fail(fmt::format("token id {} is out of range, expected 0 to {}", id, kMaxPieces - 1));
    }
    const auto index = static_cast<size_t>(id);
    if (index >= source_.pieces.size()) {
      source_.pieces.resize(index + 1);
    }
    return source_.pieces[index];
  }

  TokenizerSource& source_;
  std::vector<AddedToken> added_tokens_;
  std::string place_ = "top level";
};

/// Appends one integer, or all of a list of them; null counts as none.
void append_integers(ondemand::value value, std::vector<int64_t>& out) {
  const ondemand::json_type type = value.type();
  if (type == ondemand::json_type::array) {
    for (auto element : value.get_array()) {
      out.push_back(element.get_int64());
    }
  } else if (type != ondemand::json_type::null) {
    out.push_back(value.get_int64());
  }
}

}  // namespace

TokenizerJson::TokenizerJson(std::string_view json) : document_(std::make_unique<Document>(json)) {
  TokenizerReader reader(source_);
  try {
    ondemand::document document = document_->parser.iterate(document_->text);
    reader.read(document);
  } catch (const simdjson::simdjson_error& error) {
    fail_malformed("tokenizer.json", reader.place(), error.what());
  }
}

TokenizerJson::~TokenizerJson() = default;

void TokenizerJson::add_stop_ids(std::span<const int64_t> ids) {
  source_.stop_ids.insert(source_.stop_ids.end(), ids.begin(), ids.end());
}

void TokenizerJson::add_generation_config(std::string_view json) {
  const simdjson::padded_string text(json);
  ondemand::parser parser;
  std::string place = "top level";
  try {
    ondemand::document document = parser.iterate(text);
    for (auto field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      place = key;
      if (key == "eos_token_id") {
        append_integers(field.value(), source_.stop_ids);
      } else if (key == "suppress_tokens") {
        append_integers(field.value(), source_.suppressed_ids);
      }
    }
  } catch (const simdjson::simdjson_error& error) {
    fail_malformed("generation_config.json", place, error.what());
  }
}

}  // namespace octet
