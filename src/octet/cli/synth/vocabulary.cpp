#include "octet/cli/synth/vocabulary.h"

#include <array>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"

namespace octet::cli {
namespace {

constexpr int64_t kGemmaVocabulary = 262144;
constexpr int kTypeNormal = 1;
constexpr int kTypeUnknown = 2;
constexpr int kTypeControl = 3;
constexpr int kTypeUnused = 5;
constexpr int kTypeByte = 6;
constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, the space of pieces
constexpr int kLongestRun = 31;

struct ControlToken {
  std::string_view text;
  int64_t gemma_id;
};

constexpr std::array<ControlToken, 17> kControlTokens = {{
    {"<pad>", 0},
    {"<eos>", 1},
    {"<bos>", 2},
    {"<unk>", 3},
    {"<mask>", 4},
    {"<|tool>", 46},
    {"<tool|>", 47},
    {"<|tool_call>", 48},
    {"<tool_call|>", 49},
    {"<|tool_response>", 50},
    {"<tool_response|>", 51},
    {"<|\"|>", 52},
    {"<|think|>", 98},
    {"<|channel>", 100},
    {"<channel|>", 101},
    {"<|turn>", 105},
    {"<turn|>", 106},
}};
constexpr int64_t kFirstFreeGemmaId = 107;

class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(int64_t size) : size_(static_cast<size_t>(size)) {}

  bool full() const { return vocabulary_.pieces.size() >= size_; }

  void add(std::string piece, int type) {
    if (!full() && known_.insert(piece).second) {
      vocabulary_.pieces.push_back(std::move(piece));
      vocabulary_.types.push_back(type);
    }
  }

  /// The piece left + right, made by that merge.
  void merge(const std::string& left, const std::string& right) {
    std::string piece = left + right;
    if (!full() && known_.insert(piece).second) {
      vocabulary_.pieces.push_back(std::move(piece));
      vocabulary_.types.push_back(kTypeNormal);
      vocabulary_.merges.push_back(left + ' ' + right);
    }
  }

  void add_control_tokens() {
    if (size_ < static_cast<size_t>(kGemmaVocabulary)) {
      for (const ControlToken& token : kControlTokens) {
        add(std::string(token.text), token.text == "<unk>" ? kTypeUnknown : kTypeControl);
      }
      return;
    }
    size_t next = 0;
    for (int64_t id = 0; id < kFirstFreeGemmaId; ++id) {
      if (next < kControlTokens.size() && kControlTokens.at(next).gemma_id == id) {
        const std::string_view text = kControlTokens.at(next).text;
        add(std::string(text), text == "<unk>" ? kTypeUnknown : kTypeControl);
        ++next;
      } else {
        add(fmt::format("<unused{}>", id), kTypeUnused);
      }
    }
  }

  void add_runs(const std::string& unit) {
    std::string run = unit;
    for (int length = 2; length <= kLongestRun; ++length) {
      merge(run, unit);
      run += unit;
    }
  }

  void add_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
      add(fmt::format("<0x{:02X}>", byte), kTypeByte);
    }
  }

  SynthVocabulary take() {
    OCTET_CHECK(full());
    return std::move(vocabulary_);
  }

 private:
  size_t size_;
  SynthVocabulary vocabulary_;
  std::unordered_set<std::string> known_;
};

std::vector<std::string> characters_between(char32_t first, char32_t last) {
  std::vector<std::string> characters;
  for (char32_t code = first; code <= last; ++code) {
    std::string text;
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xC0 | (code >> 6));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
    characters.push_back(std::move(text));
  }
  return characters;
}

/// Words of growing length: pairs of letters, pairs with a leading space, then pairs of those.
void grow_words(VocabularyBuilder& builder) {
  const std::vector<std::string> letters = characters_between('a', 'z');
  std::vector<std::string> pairs;
  for (const std::string& first : letters) {
    builder.merge(std::string(kSpace), first);
  }
  for (const std::string& first : letters) {
    for (const std::string& second : letters) {
      builder.merge(first, second);
      pairs.push_back(first + second);
    }
  }
  for (const std::string& first : letters) {
    for (const std::string& pair : pairs) {
      builder.merge(std::string(kSpace) + first, pair);
    }
  }
  for (const std::string& first : pairs) {
    for (const std::string& second : pairs) {
      if (builder.full()) {
        return;
      }
      builder.merge(first, second);
    }
  }
}

}  // namespace

SynthVocabulary make_vocabulary(int64_t size) {
  OCTET_CHECK(size >= 600);
  VocabularyBuilder builder(size);
  builder.add_control_tokens();
  builder.add("\n", kTypeNormal);
  builder.add(std::string(kSpace), kTypeNormal);
  builder.add_runs("\n");
  builder.add_runs(std::string(kSpace));
  builder.add_bytes();
  for (std::string& character : characters_between('!', '~')) {
    builder.add(std::move(character), kTypeNormal);
  }
  for (std::string& character : characters_between(0xA1, 0xFF)) {
    builder.add(std::move(character), kTypeNormal);
  }
  grow_words(builder);
  return builder.take();
}

void add_tokenizer(Metadata& metadata, const SynthVocabulary& vocabulary) {
  const std::vector<std::string_view> pieces(vocabulary.pieces.begin(), vocabulary.pieces.end());
  const std::vector<std::string_view> merges(vocabulary.merges.begin(), vocabulary.merges.end());
  metadata.set("tokenizer.ggml.model", std::string("gemma4"));
  metadata.set("tokenizer.ggml.tokens", MetadataArray(pieces));
  metadata.set("tokenizer.ggml.scores", MetadataArray(std::vector<float>(pieces.size(), -1000.0F)));
  metadata.set("tokenizer.ggml.token_type", MetadataArray(vocabulary.types));
  metadata.set("tokenizer.ggml.merges", MetadataArray(merges));
  metadata.set("tokenizer.ggml.bos_token_id", uint32_t{2});
  metadata.set("tokenizer.ggml.eos_token_id", uint32_t{1});
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id] == "<turn|>") {
      metadata.set("tokenizer.ggml.eot_token_id", static_cast<uint32_t>(id));
      break;
    }
  }
  metadata.set("tokenizer.ggml.unknown_token_id", uint32_t{3});
  metadata.set("tokenizer.ggml.padding_token_id", uint32_t{0});
  metadata.set("tokenizer.ggml.mask_token_id", uint32_t{4});
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  metadata.set("tokenizer.ggml.add_bos_token", true);
}

}  // namespace octet::cli
