#include "octet/text/tokenizer_metadata.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/json_writer.h"
#include "octet/text/tokenizer_json.h"
#include "octet/text/tokenizer_source.h"
#include "octet/text/vocabulary.h"

namespace octet {
namespace {

enum GgufTokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

constexpr float kPlaceholderScore = -1000.0F;  // merges decide, never scores

// Control tokens that a reply may hold and that are to be rendered as text.
constexpr std::string_view kRenderedTokens[] = {
    "<|channel>",
    "<channel|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|\"|>"};

// Tokens with an id key of their own.
constexpr std::pair<std::string_view, std::string_view> kNamedTokens[] = {
    {"<pad>", "tokenizer.ggml.padding_token_id"},
    {"<eos>", "tokenizer.ggml.eos_token_id"},
    {"<bos>", "tokenizer.ggml.bos_token_id"},
    {"<unk>", "tokenizer.ggml.unknown_token_id"},
    {"<mask>", "tokenizer.ggml.mask_token_id"},
    {"<turn|>", "tokenizer.ggml.eot_token_id"},
};

bool is_byte_token(std::string_view piece) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  return piece.size() == 6 && piece.starts_with("<0x") && piece[5] == '>' &&
         kHex.find(piece[3]) != std::string_view::npos &&
         kHex.find(piece[4]) != std::string_view::npos;
}

bool is_unused_token(std::string_view piece) {
  constexpr std::string_view kHead = "<unused";
  if (!piece.starts_with(kHead) || !piece.ends_with('>') || piece.size() == kHead.size() + 1) {
    return false;
  }
  const std::string_view number = piece.substr(kHead.size(), piece.size() - kHead.size() - 1);
  return number.find_first_not_of("0123456789") == std::string_view::npos;
}

GgufTokenType token_type(std::string_view piece, bool special) {
  if (piece == "<unk>") {
    return kUnknown;
  }
  if (is_byte_token(piece)) {
    return kByte;
  }
  if (is_unused_token(piece)) {
    return kUnused;
  }
  if (!special) {
    return kNormal;
  }
  const auto* rendered = std::find(std::begin(kRenderedTokens), std::end(kRenderedTokens), piece);
  return rendered == std::end(kRenderedTokens) ? kControl : kUserDefined;
}

/// The parsed file and the merges joined to "left right".
struct Storage {
  explicit Storage(std::string_view json) : file(json) {}

  TokenizerJson file;
  std::string merges;
};

std::vector<std::string_view> join_merges(Storage& storage) {
  const std::vector<MergeText>& merges = storage.file.source().merges;
  size_t bytes = 0;
  for (const MergeText& merge : merges) {
    bytes += merge.left.size() + merge.right.size() + 1;
  }
  storage.merges.reserve(bytes);  // views of it must not move
  std::vector<std::string_view> joined;
  joined.reserve(merges.size());
  for (const MergeText& merge : merges) {
    const size_t begin = storage.merges.size();
    storage.merges.append(merge.left).append(1, ' ').append(merge.right);
    joined.push_back(std::string_view(storage.merges).substr(begin));
  }
  return joined;
}

const std::vector<std::string_view>& required_strings(const Metadata& metadata, const char* key) {
  const std::vector<std::string_view>* strings = metadata.find_strings(key);
  if (strings == nullptr) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("the metadata has no {}, which a tokenizer.json is made from", key)
    );
  }
  return *strings;
}

void write_added_token(JsonWriter& json, size_t id, std::string_view piece) {
  json.begin_object().member("id", static_cast<int64_t>(id)).member("content", piece);
  json.member("single_word", false).member("lstrip", false).member("rstrip", false);
  json.member("normalized", false).member("special", true).end_object();
}

void write_added_tokens(
    JsonWriter& json, const std::vector<std::string_view>& pieces, const std::vector<int64_t>& types
) {
  json.key("added_tokens").begin_array();
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (types[id] == kUnknown || types[id] == kControl || types[id] == kUserDefined) {
      write_added_token(json, id, pieces[id]);
    }
  }
  json.end_array();
}

void write_replacement(JsonWriter& json, std::string_view from, std::string_view to) {
  json.member("type", "Replace");
  json.key("pattern").begin_object().member("String", from).end_object();
  json.member("content", to);
}

/// What stands before and after the merges is the same for every tokenizer of this kind.
void write_pipeline(JsonWriter& json) {
  json.key("normalizer").begin_object();
  write_replacement(json, " ", kSpaceSymbol);
  json.end_object();
  json.key("pre_tokenizer").begin_object().member("type", "Split");
  json.key("pattern").begin_object().member("String", " ").end_object();
  json.member("behavior", "MergedWithPrevious").member("invert", false).end_object();
  json.key("post_processor").null();
  json.key("decoder").begin_object().member("type", "Sequence").key("decoders").begin_array();
  json.begin_object();
  write_replacement(json, kSpaceSymbol, " ");
  json.end_object();
  json.begin_object().member("type", "ByteFallback").end_object();
  json.begin_object().member("type", "Fuse").end_object();
  json.end_array().end_object();
}

}  // namespace

TokenizerMetadata tokenizer_metadata_from_json(
    std::string_view tokenizer_json, std::string_view generation_config_json
) {
  auto storage = std::make_shared<Storage>(tokenizer_json);
  if (!generation_config_json.empty()) {
    storage->file.add_generation_config(generation_config_json);
  }
  const TokenizerSource& source = storage->file.source();
  std::vector<bool> special(source.pieces.size(), false);
  for (const TokenId id : source.declared_special) {
    special[static_cast<size_t>(id)] = true;
  }
  std::vector<int32_t> types;
  TokenizerMetadata result;
  Metadata& metadata = result.metadata;
  for (size_t id = 0; id < source.pieces.size(); ++id) {
    types.push_back(token_type(source.pieces[id], special[id]));
    for (const auto& [piece, key] : kNamedTokens) {
      if (source.pieces[id] == piece) {
        metadata.set(std::string(key), static_cast<uint32_t>(id));
      }
    }
  }
  metadata.set("tokenizer.ggml.model", std::string("gemma4"));
  metadata.set("tokenizer.ggml.tokens", MetadataArray(source.pieces));
  metadata.set(
      "tokenizer.ggml.scores",
      MetadataArray(std::vector<float>(source.pieces.size(), kPlaceholderScore))
  );
  metadata.set("tokenizer.ggml.token_type", MetadataArray(std::move(types)));
  metadata.set("tokenizer.ggml.merges", MetadataArray(join_merges(*storage)));
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  metadata.set("tokenizer.ggml.add_bos_token", true);
  if (!source.suppressed_ids.empty()) {
    metadata.set(
        "tokenizer.ggml.suppress_tokens",
        MetadataArray(
            std::vector<int32_t>(source.suppressed_ids.begin(), source.suppressed_ids.end())
        )
    );
  }
  result.storage = std::move(storage);
  return result;
}

std::string tokenizer_json_text(const Metadata& metadata) {
  const std::vector<std::string_view>& pieces = required_strings(metadata, "tokenizer.ggml.tokens");
  const std::vector<std::string_view>& merges = required_strings(metadata, "tokenizer.ggml.merges");
  const std::vector<int64_t> types =
      metadata.find_integers("tokenizer.ggml.token_type").value_or(std::vector<int64_t>());
  if (types.size() != pieces.size()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "tokenizer.ggml.token_type has {} elements, expected one for each of {} tokens",
            types.size(),
            pieces.size()
        )
    );
  }
  JsonWriter json;
  json.begin_object().member("version", "1.0");
  json.key("truncation").null().key("padding").null();
  write_added_tokens(json, pieces, types);
  write_pipeline(json);
  json.key("model").begin_object().member("type", "BPE").key("dropout").null();
  json.member("unk_token", "<unk>").key("continuing_subword_prefix").null();
  json.key("end_of_word_suffix").null().member("fuse_unk", true).member("byte_fallback", true);
  json.member("ignore_merges", false).key("vocab").begin_object();
  for (size_t id = 0; id < pieces.size(); ++id) {
    json.member(pieces[id], static_cast<int64_t>(id));
  }
  json.end_object().key("merges").begin_array();
  for (const std::string_view merge : merges) {
    json.value(merge);
  }
  json.end_array().end_object().end_object();
  return json.text();
}

std::string tokenizer_config_json_text(const Metadata& metadata) {
  const std::vector<std::string_view>& pieces = required_strings(metadata, "tokenizer.ggml.tokens");
  JsonWriter json;
  json.begin_object().member("tokenizer_class", "PreTrainedTokenizerFast");
  constexpr std::pair<const char*, const char*> kTokens[] = {
      {"bos_token", "tokenizer.ggml.bos_token_id"},
      {"eos_token", "tokenizer.ggml.eos_token_id"},
      {"pad_token", "tokenizer.ggml.padding_token_id"},
      {"unk_token", "tokenizer.ggml.unknown_token_id"},
      {"mask_token", "tokenizer.ggml.mask_token_id"}};
  for (const auto& [name, key] : kTokens) {
    const std::optional<int64_t> id = metadata.find_integer(key);
    if (id && *id >= 0 && *id < static_cast<int64_t>(pieces.size())) {
      json.member(name, pieces[static_cast<size_t>(*id)]);
    }
  }
  json.member("clean_up_tokenization_spaces", false).end_object();
  return json.text();
}

}  // namespace octet
