#include "octet/formats/hf_checkpoint.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/hf_config.h"
#include "octet/formats/hf_tensors.h"
#include "octet/formats/json_value.h"
#include "octet/formats/message_text.h"
#include "octet/formats/model_metadata.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/formats/safetensors_reader.h"
#include "octet/formats/tensor_names.h"

namespace octet {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSidecars[] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "processor_config.json",
    "generation_config.json"};

// What may stand before the names of tensor_names.cpp; the longest that fits is taken off.
constexpr std::string_view kPrefixes[] = {
    "model.language_model.", "language_model.model.", "language_model.", "model."};

constexpr std::string_view kTowerPrefixes[] = {
    "vision_tower.", "audio_tower.", "embed_vision.", "embed_audio."};

bool starts_with_any(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view prefix) {
    return name.starts_with(prefix);
  });
}

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) {
      return name.substr(prefix.size());
    }
  }
  return name;
}

template <typename Body>
auto with_context(const std::string& context, Body body) {
  try {
    return body();
  } catch (Error& error) {
    error.add_context(context);
    throw;
  }
}

HfConfig read_configs(const fs::path& directory) {
  const std::string config_path = (directory / "config.json").string();
  const JsonValue json = read_json_object(config_path);
  HfConfig config = with_context(config_path, [&] { return read_hf_config(json); });
  const fs::path generation = directory / "generation_config.json";
  if (fs::exists(generation)) {
    with_context(generation.string(), [&] {
      add_generation_config(config.metadata, read_json_object(generation.string()));
    });
  }
  const fs::path quantization = directory / "hf_quant_config.json";
  if (fs::exists(quantization)) {
    with_context(quantization.string(), [&] {
      add_quantization_config(config.metadata, read_json_object(quantization.string()));
    });
  }
  return config;
}

/// The text model's tensors under their names without prefix, in the order of the files.
std::vector<SafetensorsTensor> text_tensors(
    const std::vector<SafetensorsFile>& files, bool drop_head
) {
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsTensor& tensor : file.tensors) {
      const std::string_view name = without_prefix(tensor.name);
      if (starts_with_any(name, kTowerPrefixes) || (drop_head && name.starts_with("lm_head."))) {
        continue;
      }
      tensors.push_back(tensor);
      tensors.back().name = name;
    }
  }
  return tensors;
}

/// Gives the tensors their canonical names; those without one keep theirs, and the validation
/// reports them.
void rename_tensors(std::vector<LogicalTensor>& tensors, const Metadata& metadata) {
  std::map<std::string, std::string, std::less<>> names;
  for (const ExpectedTensor& expected : expected_tensors(metadata)) {
    if (!expected.hf_name.empty()) {
      names.emplace(expected.hf_name, expected.name);
    }
  }
  for (LogicalTensor& tensor : tensors) {
    const auto found = names.find(tensor.name);
    if (found != names.end()) {
      tensor.name = found->second;
    }
  }
}

std::shared_ptr<const Checkpoint> build(
    const std::string& path,
    const fs::path& directory,
    const std::vector<SafetensorsFile>& files,
    UnusedTensors unused
) {
  const HfConfig config = read_configs(directory);
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = path;
  checkpoint->metadata = config.metadata;
  for (const SafetensorsFile& file : files) {
    checkpoint->files.push_back(file.mapping);
  }
  for (const std::string_view name : kSidecars) {
    if (fs::exists(directory / name)) {
      checkpoint->sidecars.emplace(name, (directory / name).string());
    }
  }
  with_context(path, [&] {
    const bool is_target = checkpoint->architecture() == "gemma4";
    const std::vector<SafetensorsTensor> sources =
        text_tensors(files, is_target && config.tied_head);
    std::vector<LogicalTensor> tensors = join_hf_tensors(sources);
    rename_tensors(tensors, checkpoint->metadata);
    if (is_target) {
      const int64_t head_dim = gemma4_dimensions(checkpoint->metadata).head_dim_full;
      tensors.push_back(make_rope_frequencies(*checkpoint, head_dim, config.partial_rotary_factor));
    }
    add_validated_tensors(*checkpoint, std::move(tensors), unused);
    if (is_target && !config.tied_head && checkpoint->find("output.weight") == nullptr) {
      throw Error(
          ErrorKind::kNotFound,
          "tensor 'lm_head.weight' is missing, but 'tie_word_embeddings' is false"
      );
    }
  });
  return checkpoint;
}

/// The .safetensors files of a directory, sorted.
std::vector<std::string> weight_files(const fs::path& directory) {
  std::vector<std::string> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".safetensors") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<SafetensorsFile> read_single(const std::string& path) {
  std::vector<SafetensorsFile> files;
  files.push_back(read_safetensors(path));
  return files;
}

}  // namespace

std::shared_ptr<const Checkpoint> open_hf_directory(
    const std::string& directory, UnusedTensors unused
) {
  const fs::path root(directory);
  if (!fs::exists(root / "config.json")) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format(
            "{}: no config.json in this directory; name a GGUF file, or a directory with "
            "config.json and .safetensors files",
            directory
        )
    );
  }
  if (fs::exists(root / kIndexName)) {
    return build(directory, root, read_safetensors_index((root / kIndexName).string()), unused);
  }
  const std::vector<std::string> paths = weight_files(root);
  if (paths.size() != 1) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format(
            "{}: {} .safetensors files and no {}; expected one file, or an index",
            directory,
            paths.size(),
            kIndexName
        )
    );
  }
  return build(directory, root, read_single(paths.front()), unused);
}

std::shared_ptr<const Checkpoint> open_hf_file(const std::string& path, UnusedTensors unused) {
  fs::path directory = fs::path(path).parent_path();
  if (directory.empty()) {
    directory = ".";
  }
  if (!fs::exists(directory / "config.json")) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{}: a .safetensors file needs its config.json beside it; there is none", path)
    );
  }
  const fs::path index = directory / kIndexName;
  if (fs::exists(index)) {
    std::vector<SafetensorsFile> files = read_safetensors_index(index.string());
    const bool is_shard = std::any_of(files.begin(), files.end(), [&](const SafetensorsFile& file) {
      return fs::path(file.path).filename() == fs::path(path).filename();
    });
    if (is_shard) {
      return build(path, directory, files, unused);
    }
  }
  return build(path, directory, read_single(path), unused);
}

}  // namespace octet
