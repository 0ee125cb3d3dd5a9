#include "octet/formats/checkpoint_files.h"

#include <filesystem>

#include "octet/formats/durable_files.h"

namespace octet {

namespace {

/// What a Hugging Face folder says of its weights; the other texts are the checkpoint's sidecars.
constexpr const char* kConfigs[] = {
    "config.json", "hf_quant_config.json", "model.safetensors.index.json"};

void add_files(const Checkpoint& checkpoint, std::vector<std::string>& files) {
  files.push_back(checkpoint.path);
  for (const auto& file : checkpoint.files) {
    const std::filesystem::path path(file->path());
    files.push_back(path.string());
    if (path.extension() == ".safetensors") {
      for (const char* name : kConfigs) {
        files.push_back((folder_of(path) / name).string());
      }
    }
  }
  for (const auto& [name, path] : checkpoint.sidecars) {
    files.push_back(path);
  }
}

}  // namespace

std::vector<std::string> all_inputs(
    std::initializer_list<std::shared_ptr<const Checkpoint>> checkpoints,
    std::vector<std::string> others
) {
  for (const auto& checkpoint : checkpoints) {
    if (checkpoint != nullptr) {
      add_files(*checkpoint, others);
    }
  }
  return others;
}

}  // namespace octet
