#include "octet/text/load_tokenizer.h"

#include <optional>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/text/tokenizer_json.h"

namespace octet {
namespace {

/// GGUF token types that a converter gives to tokens with a meaning of their own.
constexpr int64_t kControlType = 3;
constexpr int64_t kUserDefinedType = 4;

const std::vector<std::string_view>& required_strings(
    const Metadata& metadata, std::string_view key
) {
  const std::vector<std::string_view>* strings = metadata.find_strings(key);
  if (strings == nullptr) {
    throw Error(
        ErrorKind::kNotFound, fmt::format("the metadata has no {}, which the tokenizer needs", key)
    );
  }
  return *strings;
}

std::vector<TokenId> declared_special_ids(const Metadata& metadata, size_t pieces) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  std::vector<TokenId> ids;
  const std::optional<std::vector<int64_t>> types = metadata.find_integers(kKey);
  if (!types) {
    return ids;
  }
  if (types->size() != pieces) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{} has {} elements, expected one for each of {} tokens", kKey, types->size(), pieces
        )
    );
  }
  for (size_t id = 0; id < pieces; ++id) {
    if ((*types)[id] == kControlType || (*types)[id] == kUserDefinedType) {
      ids.push_back(static_cast<TokenId>(id));
    }
  }
  return ids;
}

std::vector<int64_t> end_tokens(const Metadata& metadata) {
  std::vector<int64_t> all =
      metadata.find_integers("tokenizer.ggml.eos_token_ids").value_or(std::vector<int64_t>());
  for (const std::string_view key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    if (const std::optional<int64_t> id = metadata.find_integer(key)) {
      all.push_back(*id);
    }
  }
  return all;
}

TokenizerSource source_from_metadata(const Metadata& metadata) {
  const std::string& model = metadata.string("tokenizer.ggml.model");
  if (model != "gemma4") {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tokenizer.ggml.model is \"{}\", the only tokenizer octet knows is \"gemma4\"", model
        )
    );
  }
  TokenizerSource source;
  source.pieces = required_strings(metadata, "tokenizer.ggml.tokens");
  const std::vector<std::string_view>& merges = required_strings(metadata, "tokenizer.ggml.merges");
  source.merges.reserve(merges.size());
  for (const std::string_view merge : merges) {
    source.merges.push_back(split_merge(merge, source.merges.size()));
  }
  source.declared_special = declared_special_ids(metadata, source.pieces.size());
  source.bos = metadata.find_integer("tokenizer.ggml.bos_token_id").value_or(kNoToken);
  source.stop_ids = end_tokens(metadata);
  source.suppressed_ids =
      metadata.find_integers("tokenizer.ggml.suppress_tokens").value_or(std::vector<int64_t>());
  return source;
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::shared_ptr<const Tokenizer> from_checkpoint(const Checkpoint& checkpoint) {
  if (checkpoint.metadata.contains("tokenizer.ggml.model")) {
    return std::make_shared<const Tokenizer>(source_from_metadata(checkpoint.metadata));
  }
  const auto tokenizer_path = checkpoint.sidecars.find("tokenizer.json");
  if (tokenizer_path == checkpoint.sidecars.end()) {
    throw Error(
        ErrorKind::kNotFound,
        "there is no tokenizer: neither tokenizer.ggml.model in the metadata nor a file "
        "tokenizer.json beside the weights"
    );
  }
  const auto tokenizer_file = MappedFile::open(tokenizer_path->second);
  TokenizerJson json(text_of(*tokenizer_file));
  const auto config_path = checkpoint.sidecars.find("generation_config.json");
  if (config_path != checkpoint.sidecars.end()) {
    json.add_generation_config(text_of(*MappedFile::open(config_path->second)));
  }
  json.add_stop_ids(end_tokens(checkpoint.metadata));  // of config.json
  return std::make_shared<const Tokenizer>(json.source());
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tokenizer(const Checkpoint& checkpoint) {
  try {
    return from_checkpoint(checkpoint);
  } catch (Error& error) {
    error.add_context(checkpoint.path);
    throw;
  }
}

std::shared_ptr<const Tokenizer> tokenizer_from_json(
    std::string_view tokenizer_json, std::string_view generation_config_json
) {
  TokenizerJson json(tokenizer_json);
  if (!generation_config_json.empty()) {
    json.add_generation_config(generation_config_json);
  }
  return std::make_shared<const Tokenizer>(json.source());
}

}  // namespace octet
