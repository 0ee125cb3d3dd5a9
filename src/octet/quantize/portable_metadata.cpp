#include "octet/quantize/portable_metadata.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/formats/json_value.h"
#include "octet/quantize/transcoder.h"
#include "octet/text/tokenizer_metadata.h"

namespace octet {
namespace {

constexpr std::string_view kTokenizerPrefix = "tokenizer.ggml.";
constexpr std::string_view kImportancePrefix = "quantize.imatrix.";
constexpr const char* kAlgorithm = "general.quant_algo";
constexpr const char* kTokenizerModel = "tokenizer.ggml.model";
constexpr const char* kChatTemplate = "tokenizer.chat_template";

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

const std::string* sidecar(const Checkpoint& checkpoint, std::string_view name) {
  const auto found = checkpoint.sidecars.find(name);
  return found == checkpoint.sidecars.end() ? nullptr : &found->second;
}

void add_absent(Metadata& metadata, const Metadata& more, std::string_view prefix) {
  for (const auto& [key, value] : more.entries()) {
    if (key.starts_with(prefix) && !metadata.contains(key)) {
      metadata.set(key, value);
    }
  }
}

/// Adds the tokenizer of `from`; false when it has none.
bool add_tokenizer(PortableMetadata& result, const Checkpoint& from) {
  if (from.metadata.contains(kTokenizerModel)) {
    add_absent(result.metadata, from.metadata, kTokenizerPrefix);
    return true;
  }
  const std::string* path = sidecar(from, "tokenizer.json");
  if (path == nullptr) {
    return false;
  }
  const auto file = MappedFile::open(*path);
  const std::string* generation = sidecar(from, "generation_config.json");
  try {
    TokenizerMetadata tokenizer =
        generation == nullptr
            ? tokenizer_metadata_from_json(text_of(*file))
            : tokenizer_metadata_from_json(text_of(*file), text_of(*MappedFile::open(*generation)));
    add_absent(result.metadata, tokenizer.metadata, kTokenizerPrefix);
    result.storage.push_back(std::move(tokenizer.storage));
  } catch (Error& error) {
    error.add_context(from.path);
    throw;
  }
  return true;
}

/// "chat_template" is the text, or a list of {"name", "template"} of which one is the default.
std::string template_of(const JsonValue& value, const std::string& path) {
  if (value.string() != nullptr) {
    return *value.string();
  }
  if (const JsonArray* named = value.array()) {
    for (const JsonValue& entry : *named) {
      const std::string* name = entry.object() ? entry.find_string("name") : nullptr;
      const std::string* text = entry.object() ? entry.find_string("template") : nullptr;
      if (name != nullptr && *name == "default" && text != nullptr) {
        return *text;
      }
    }
  }
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format(
          "{}: 'chat_template' is {} and names no 'default' template; put the one to use beside it "
          "as chat_template.jinja",
          path,
          value.type_name()
      )
  );
}

std::optional<std::string> chat_template(const Checkpoint& source) {
  if (const std::string* path = sidecar(source, "chat_template.jinja")) {
    return std::string(text_of(*MappedFile::open(*path)));
  }
  if (const std::string* path = sidecar(source, "tokenizer_config.json")) {
    const JsonValue config = read_json_object(*path);
    if (const JsonValue* text = config.find("chat_template")) {
      return template_of(*text, *path);
    }
  }
  return std::nullopt;
}

std::string name_of(const std::string& path) {
  std::filesystem::path last(path);
  if (last.filename().empty()) {
    last = last.parent_path();
  }
  return last.filename().string();
}

}  // namespace

PortableMetadata gather_metadata(
    const Checkpoint& source, const Checkpoint* tokenizer_source, TokenizerNeed need
) {
  PortableMetadata result;
  result.metadata = source.metadata;
  const bool found = add_tokenizer(result, source) ||
                     (tokenizer_source != nullptr && add_tokenizer(result, *tokenizer_source));
  if (!found && need == TokenizerNeed::kRequired) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format(
            "{}: there is no tokenizer in it; name a checkpoint that has one, a drafter's target, "
            "with --tokenizer",
            source.path
        )
    );
  }
  if (!result.metadata.contains(kChatTemplate)) {
    if (std::optional<std::string> text = chat_template(source)) {
      result.metadata.set(kChatTemplate, *std::move(text));
    }
  }
  if (!result.metadata.contains("general.name")) {
    result.metadata.set("general.name", name_of(source.path));
  }
  if (!result.metadata.contains("general.type")) {
    result.metadata.set("general.type", std::string("model"));
  }
  return result;
}

void describe_new_types(Metadata& metadata, const CheckpointPlan& plan) {
  std::vector<std::string> idle;
  for (const auto& [key, value] : metadata.entries()) {
    if (key.starts_with(kImportancePrefix)) {
      idle.push_back(key);
    }
  }
  bool kept = false;
  bool folder = false;
  bool all_scaled = true;
  for (const PlannedTensor& planned : plan) {
    folder = folder || planned.dtype == DType::kNVFP4ModelOpt;
    if (planned.dtype == DType::kNVFP4 || planned.dtype == DType::kNVFP4ModelOpt) {
      const bool exact = is_exact_copy(*planned.source, planned.dtype);
      kept = kept || exact;
      all_scaled = all_scaled && exact && planned.source->input_scale.has_value();
    }
  }
  const std::string* algorithm = metadata.find_string(kAlgorithm);
  // A folder's other words follow from its input scales, which calibration may still add.
  const bool mixed = algorithm != nullptr && *algorithm == "MIXED_PRECISION";
  if (!kept || (folder && !mixed)) {
    idle.emplace_back(kAlgorithm);
  } else if (algorithm != nullptr && *algorithm == "NVFP4" && !all_scaled) {
    metadata.set(kAlgorithm, std::string("MIXED_PRECISION"));
  }
  for (const std::string& key : idle) {
    metadata.erase(key);
  }
}

}  // namespace octet
