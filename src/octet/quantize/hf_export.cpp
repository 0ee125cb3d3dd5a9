#include "octet/quantize/hf_export.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/json_writer.h"
#include "octet/base/mapped_file.h"
#include "octet/formats/atomic_file.h"
#include "octet/formats/hf_config_writer.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/formats/safetensors_types.h"
#include "octet/formats/safetensors_writer.h"
#include "octet/formats/tensor_names.h"
#include "octet/quantize/nvfp4_weights.h"
#include "octet/quantize/output_place.h"
#include "octet/quantize/transcoder.h"
#include "octet/text/tokenizer_metadata.h"

namespace octet {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";
constexpr std::string_view kSafetensorsName = "model.safetensors";
constexpr std::string_view kIndexName = "model.safetensors.index.json";

/// Names in the folder by canonical names.
std::map<std::string, std::string, std::less<>> hf_names(const Metadata& metadata) {
  const bool target = metadata.string("general.architecture") == "gemma4";
  std::map<std::string, std::string, std::less<>> names;
  for (const ExpectedTensor& tensor : expected_tensors(metadata)) {
    // The head stands outside the model in both kinds of folders; a drafter has no prefix at all.
    const bool inside = target && tensor.hf_name != "lm_head.weight";
    names.emplace(tensor.name, (inside ? "model." : "") + tensor.hf_name);
  }
  return names;
}

std::string_view safetensors_dtype(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    default:
      return "BF16";
  }
}

/// One tensor of the plan under its name in the folder.
struct NamedTensor {
  const PlannedTensor* planned = nullptr;
  std::string name;

  std::string module() const { return name.substr(0, name.size() - kWeightSuffix.size()); }
  bool nvfp4() const { return planned->dtype == DType::kNVFP4ModelOpt; }
};

std::vector<NamedTensor> name_tensors(const CheckpointPlan& plan, const Metadata& metadata) {
  const auto names = hf_names(metadata);
  std::vector<NamedTensor> named;
  for (const PlannedTensor& planned : plan) {
    named.push_back({&planned, names.at(planned.source->name)});
  }
  return named;
}

HfTensorFacts tensor_facts(const Checkpoint& source, const std::vector<NamedTensor>& tensors) {
  HfTensorFacts facts;
  facts.own_head = source.find("output.weight") != nullptr;
  if (const LogicalTensor* divisors = source.find(kRopeFrequenciesName)) {
    facts.partial_rotary_factor = partial_rotary_factor_of(*divisors);
  }
  if (const LogicalTensor* table = source.find("per_layer_token_embd.weight")) {
    facts.per_layer_vocabulary = table->rows();
  }
  std::map<DType, int64_t> values;
  for (const NamedTensor& tensor : tensors) {
    const LogicalTensor& weight = *tensor.planned->source;
    if (tensor.nvfp4()) {
      facts.nvfp4_modules.push_back({tensor.module(), weight.input_scale.has_value()});
      continue;
    }
    values[tensor.planned->dtype] += weight.elements();
    if (weight.shape.size() == 2) {
      facts.full_precision_modules.push_back(tensor.module());
    }
  }
  for (const auto& [dtype, count] : values) {
    facts.prevailing = count > values[facts.prevailing] ? dtype : facts.prevailing;
  }
  return facts;
}

/// What a tensor of the plan is in a file: itself, or for NVFP4 the codes with three others.
enum class Part { kValues, kBlockScales, kGlobalScale, kInputScale };

struct StoredTensor {
  const NamedTensor* tensor = nullptr;
  Part part = Part::kValues;
  SafetensorsSpec spec;

  int element_bits() const { return safetensors_bits(spec.dtype).value(); }
  int64_t bytes() const {
    return std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1}, std::multiplies<>()) *
           element_bits() / 8;
  }
};

void add_stored(const NamedTensor& tensor, std::vector<StoredTensor>& stored) {
  const LogicalTensor& weight = *tensor.planned->source;
  const auto add = [&](Part part, SafetensorsSpec spec) {
    stored.push_back({&tensor, part, std::move(spec)});
  };
  if (!tensor.nvfp4()) {
    const std::string dtype(safetensors_dtype(tensor.planned->dtype));
    add(Part::kValues, {tensor.name, dtype, weight.shape});
    return;
  }
  const int64_t rows = weight.rows();
  const std::string module = tensor.module();
  add(Part::kValues, {tensor.name, "U8", {rows, weight.cols() / 2}});
  add(Part::kBlockScales, {module + ".weight_scale", "F8_E4M3", {rows, weight.cols() / 16}});
  add(Part::kGlobalScale, {module + ".weight_scale_2", "F32", {}});
  if (weight.input_scale) {
    add(Part::kInputScale, {module + ".input_scale", "F32", {}});
  }
}

using Shard = std::vector<const NamedTensor*>;

std::vector<Shard> cut_shards(const std::vector<NamedTensor>& tensors, int64_t shard_bytes) {
  std::vector<Shard> shards(1);
  int64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) {
    const int64_t size = planned_bytes(*tensor.planned);
    if (bytes > 0 && bytes + size > shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += size;
  }
  return shards;
}

/// In the order in which they are written. The format has no gaps and readers want every tensor
/// at a multiple of its element's size: larger elements come first.
std::vector<StoredTensor> stored_tensors(const Shard& shard) {
  std::vector<StoredTensor> stored;
  for (const NamedTensor* tensor : shard) {
    add_stored(*tensor, stored);
  }
  std::stable_sort(stored.begin(), stored.end(), [](const auto& a, const auto& b) {
    return a.element_bits() > b.element_bits();
  });
  return stored;
}

std::string shard_name(size_t index, size_t count) {
  return count == 1 ? std::string(kSafetensorsName)
                    : fmt::format("model-{:05d}-of-{:05d}.safetensors", index + 1, count);
}

std::string index_text(const std::vector<Shard>& shards) {
  int64_t total_bytes = 0;
  for (const Shard& shard : shards) {
    for (const StoredTensor& stored : stored_tensors(shard)) {
      total_bytes += stored.bytes();
    }
  }
  JsonWriter json;
  json.begin_object().key("metadata").begin_object().member("total_size", total_bytes);
  json.end_object().key("weight_map").begin_object();
  for (size_t s = 0; s < shards.size(); ++s) {
    for (const StoredTensor& stored : stored_tensors(shards[s])) {
      json.member(stored.spec.name, shard_name(s, shards.size()));
    }
  }
  json.end_object().end_object();
  return json.text();
}

void write_text(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.finish();
}

/// Files of the source's own folder are copied as they are, others made from the metadata.
void write_sidecars(
    const AtomicFolder& folder, const Checkpoint& source, const Metadata& metadata
) {
  std::map<std::string, std::string> texts;
  const bool target = metadata.string("general.architecture") == "gemma4";
  if (metadata.contains("tokenizer.ggml.tokens")) {
    texts["tokenizer.json"] = tokenizer_json_text(metadata);
    texts["tokenizer_config.json"] = tokenizer_config_json_text(metadata);
  }
  if (const std::string* text = metadata.find_string("tokenizer.chat_template")) {
    texts["chat_template.jinja"] = *text;
  }
  if (target) {
    texts["generation_config.json"] = hf_generation_config(metadata);
  }
  for (const auto& [name, path] : source.sidecars) {
    texts[name] = read_whole_file(path);
  }
  for (const auto& [name, text] : texts) {
    write_text(folder.file(name), text);
  }
}

class ShardWriter {
 public:
  ShardWriter(const ExportRequest& request, ThreadPool& pool, const OnExportProgress& on_progress)
      : transcoder_(request.source, pool),
        nvfp4_(request.source, request.plan, pool),
        meter_(request.plan, on_progress) {}

  void write(const std::string& path, const Shard& shard) {
    const std::vector<StoredTensor> tensors = stored_tensors(shard);
    std::vector<SafetensorsSpec> specs;
    specs.reserve(tensors.size());
    for (const StoredTensor& stored : tensors) {
      specs.push_back(stored.spec);
    }
    SafetensorsWriter writer(path, specs, {{"format", "pt"}});
    for (const StoredTensor& stored : tensors) {
      writer.begin_tensor(stored.spec.name);
      write_part(writer, stored);
      writer.end_tensor();
    }
    writer.finish();
  }

 private:
  void write_part(SafetensorsWriter& writer, const StoredTensor& stored) {
    const PlannedTensor& planned = *stored.tensor->planned;
    const LogicalTensor& weight = *planned.source;
    const auto write_rows = [&](std::span<const std::byte> bytes, int64_t rows) {
      writer.write(bytes);
      meter_.add_rows(weight, rows);
    };
    const auto write_number = [&](float value) {
      writer.write(std::as_bytes(std::span(&value, 1)));
    };
    switch (stored.part) {
      case Part::kValues:
        if (stored.tensor->nvfp4()) {
          nvfp4_.write(weight, block_scales_, write_rows);
        } else {
          transcoder_.transcode(weight, {planned.dtype, {}}, write_rows);
        }
        break;
      case Part::kBlockScales:  // right behind the codes, whose elements are as small
        writer.write(block_scales_);
        break;
      case Part::kGlobalScale:
        write_number(nvfp4_.global_scale(weight));
        break;
      case Part::kInputScale:
        write_number(weight.input_scale.value());
        break;
    }
  }

  Transcoder transcoder_;
  Nvfp4Weights nvfp4_;
  ExportMeter meter_;
  std::vector<std::byte> block_scales_;  // of the weight whose codes were written last
};

}  // namespace

void write_hf_checkpoint(
    const ExportRequest& request,
    int64_t shard_bytes,
    ThreadPool& pool,
    const OnExportProgress& on_progress
) {
  const std::vector<NamedTensor> tensors = name_tensors(request.plan, request.metadata);
  const HfTensorFacts facts = tensor_facts(request.source, tensors);
  const std::vector<Shard> shards = cut_shards(tensors, shard_bytes);
  AtomicFolder folder(request.path);
  write_text(folder.file("config.json"), hf_config(request.metadata, facts));
  if (!facts.nvfp4_modules.empty()) {
    write_text(
        folder.file("hf_quant_config.json"), hf_quantization_config(request.metadata, facts)
    );
  }
  write_sidecars(folder, request.source, request.metadata);
  if (shards.size() > 1) {
    write_text(folder.file(std::string(kIndexName)), index_text(shards));
  }
  ShardWriter writer(request, pool, on_progress);
  for (size_t s = 0; s < shards.size(); ++s) {
    writer.write(folder.file(shard_name(s, shards.size())), shards[s]);
  }
  folder.finish();
}

}  // namespace octet
