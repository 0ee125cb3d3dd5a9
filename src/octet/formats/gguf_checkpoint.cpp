#include "octet/formats/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/canonical_metadata.h"
#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/gguf_types.h"
#include "octet/formats/message_text.h"
#include "octet/formats/model_metadata.h"
#include "octet/formats/rope_frequencies.h"

namespace octet {

namespace {

// Towers and projectors of multimodal files, which a text engine leaves alone.
constexpr std::string_view kTowerPrefixes[] = {"v.", "a.", "mm."};

constexpr std::pair<std::string_view, std::string_view> kDraftAliases[] = {
    {"dflash.fc.weight", "fc.weight"},
    {"dflash.hidden_norm.weight", "enc.output_norm.weight"},
};

bool is_tower(std::string_view name) {
  return std::any_of(
      std::begin(kTowerPrefixes),
      std::end(kTowerPrefixes),
      [&](std::string_view prefix) { return name.starts_with(prefix); }
  );
}

std::string canonical_name(const std::string& name) {
  for (const auto& [alias, canonical] : kDraftAliases) {
    if (name == alias) {
      return std::string(canonical);
    }
  }
  return name;
}

LogicalTensor logical_tensor(const GgufTensor& source) {
  const std::optional<DType> dtype = dtype_from_gguf_id(source.type_id);
  if (!dtype) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tensor {} has type {}, which octet does not compute with; convert the model to a "
            "supported type",
            shown(source.name),
            gguf_type(source.type_id)->name
        )
    );
  }
  LogicalTensor tensor;
  tensor.name = canonical_name(source.name);
  tensor.dtype = *dtype;
  tensor.shape = source.shape;
  tensor.data = source.data;
  return tensor;
}

/// The single F32 value of an NVFP4 scale tensor.
float scale_value(const GgufTensor& tensor) {
  float value = 0.0F;
  if (tensor.type_id != dtype_facts(DType::kF32).gguf_id || tensor.data.size() != sizeof(value)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("tensor {} must be a single F32 value", shown(tensor.name))
    );
  }
  std::memcpy(&value, tensor.data.data(), sizeof(value));
  if (!std::isfinite(value) || value <= 0.0F) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("tensor {} is {}; expected a positive number", shown(tensor.name), value)
    );
  }
  return value;
}

/// Gathers tensors and folds "<base>.scale" and "<base>.input_scale" into the NVFP4 weight
/// "<base>.weight".
class TensorGatherer {
 public:
  void add(const GgufTensor& source) {
    if (is_tower(source.name)) {
      return;
    }
    if (source.name.ends_with(kScale) || source.name.ends_with(kInputScale)) {
      scales_.push_back(&source);
      return;
    }
    index_.emplace(source.name, tensors_.size());
    tensors_.push_back(logical_tensor(source));
  }

  std::vector<LogicalTensor> take() {
    for (const GgufTensor* scale : scales_) {
      fold(*scale);
    }
    return std::move(tensors_);
  }

 private:
  static constexpr std::string_view kScale = ".scale";
  static constexpr std::string_view kInputScale = ".input_scale";

  void fold(const GgufTensor& scale) {
    const bool is_input = scale.name.ends_with(kInputScale);
    const std::string_view suffix = is_input ? kInputScale : kScale;
    const std::string weight = scale.name.substr(0, scale.name.size() - suffix.size()) + ".weight";
    const auto found = index_.find(weight);
    if (found == index_.end() || tensors_[found->second].dtype != DType::kNVFP4) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "tensor {} scales {}, which is not an NVFP4 weight of this file",
              shown(scale.name),
              shown(weight)
          )
      );
    }
    if (is_input) {
      tensors_[found->second].input_scale = scale_value(scale);
    } else {
      tensors_[found->second].scale = scale_value(scale);
    }
  }

  std::vector<LogicalTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;  // by the name in the file
  std::vector<const GgufTensor*> scales_;
};

int64_t embedding_rows(const std::vector<LogicalTensor>& tensors) {
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.name == "token_embd.weight") {
      return tensor.rows();
    }
  }
  throw Error(ErrorKind::kNotFound, "tensor 'token_embd.weight' is missing; the model needs it");
}

/// A vocabulary may have fewer pieces than the embedding has rows (padding), never more.
void check_vocabulary(const Metadata& metadata) {
  const std::vector<std::string_view>* tokens = metadata.find_strings("tokenizer.ggml.tokens");
  const int64_t rows = metadata.integer("gemma4.vocab_size");
  if (tokens != nullptr && static_cast<int64_t>(tokens->size()) > rows) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "the tokenizer has {} tokens, but the embedding only {} rows", tokens->size(), rows
        )
    );
  }
}

void fill(Checkpoint& checkpoint, std::vector<GgufFile>& parts, UnusedTensors unused) {
  TensorGatherer gatherer;
  for (const GgufFile& part : parts) {
    if (part.mapping != nullptr) {
      checkpoint.files.push_back(part.mapping);
    }
    for (const GgufTensor& tensor : part.tensors) {
      gatherer.add(tensor);
    }
  }
  checkpoint.metadata = std::move(parts.front().metadata);
  const std::string architecture = checkpoint.metadata.string("general.architecture");
  std::vector<LogicalTensor> tensors = gatherer.take();
  if (architecture == "gemma4") {
    canonicalise_gemma4(checkpoint.metadata, embedding_rows(tensors));
    check_vocabulary(checkpoint.metadata);
    const bool has_frequencies =
        std::any_of(tensors.begin(), tensors.end(), [](const LogicalTensor& tensor) {
          return tensor.name == kRopeFrequenciesName;
        });
    if (!has_frequencies) {
      const int64_t head_dim = gemma4_dimensions(checkpoint.metadata).head_dim_full;
      tensors.push_back(make_rope_frequencies(checkpoint, head_dim, kDefaultPartialRotaryFactor));
    }
  } else if (is_dflash_dialect(architecture)) {
    canonicalise_dflash(checkpoint.metadata);
  }
  add_validated_tensors(checkpoint, std::move(tensors), unused);
}

}  // namespace

std::shared_ptr<const Checkpoint> checkpoint_from_gguf(
    std::vector<GgufFile> parts, const std::string& path, UnusedTensors unused
) {
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = path;
  try {
    fill(*checkpoint, parts, unused);
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
  return checkpoint;
}

std::shared_ptr<const Checkpoint> open_gguf_checkpoint(
    const std::string& path, UnusedTensors unused
) {
  return checkpoint_from_gguf(read_gguf_parts(path), path, unused);
}

}  // namespace octet
