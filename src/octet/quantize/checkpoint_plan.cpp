#include "octet/quantize/checkpoint_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/rope_frequencies.h"

namespace octet {
namespace {

constexpr int64_t kNvfp4Group = 16;

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

/// Whether every value of an F32 tensor is a BF16 number: the lower half of its bits is zero.
bool fits_bf16(const LogicalTensor& tensor) {
  for (size_t at = 0; at + 1 < tensor.data.size(); at += sizeof(float)) {
    if (tensor.data[at] != std::byte{0} || tensor.data[at + 1] != std::byte{0}) {
      return false;
    }
  }
  return true;
}

DType hf_type(const LogicalTensor& tensor, BlockTypes block_types, const std::string& path) {
  if (tensor.dtype == DType::kNVFP4 || tensor.dtype == DType::kNVFP4ModelOpt) {
    return DType::kNVFP4ModelOpt;
  }
  if (tensor.dtype == DType::kF32 && tensor.shape.size() < 2) {
    return fits_bf16(tensor) ? DType::kBF16 : DType::kF32;
  }
  if (is_float(tensor.dtype)) {
    return tensor.dtype;
  }
  if (block_types == BlockTypes::kRefuse) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}: tensor '{}' is {}, which safetensors cannot hold; add --dequantize to write its "
            "values as BF16",
            path,
            tensor.name,
            dtype_facts(tensor.dtype).name
        )
    );
  }
  return DType::kBF16;
}

PlannedTensor planned_copy(const LogicalTensor& tensor, DType dtype) {
  PlannedTensor planned;
  planned.source = &tensor;
  planned.dtype = dtype;
  return planned;
}

DType gguf_type_of_copy(const LogicalTensor& tensor) {
  if (tensor.dtype == DType::kNVFP4ModelOpt) {
    return DType::kNVFP4;
  }
  return tensor.shape.size() < 2 && is_float(tensor.dtype) ? DType::kF32 : tensor.dtype;
}

void require_whole_blocks(
    const CheckpointPlan& plan, const std::string& path, std::string_view remedy
) {
  for (const PlannedTensor& planned : plan) {
    const DTypeFacts& facts = dtype_facts(planned.dtype);
    if (planned.source->cols() % facts.block_values != 0) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "{}: rows of tensor '{}' have {} values, which are no whole blocks of {} as {} has "
              "them in GGUF; {}",
              path,
              planned.source->name,
              planned.source->cols(),
              facts.block_values,
              facts.name,
              remedy
          )
      );
    }
  }
}

CheckpointPlan every_tensor_for_gguf(const Checkpoint& source) {
  CheckpointPlan plan;
  for (const LogicalTensor& tensor : source.tensors()) {
    plan.push_back(planned_copy(tensor, gguf_type_of_copy(tensor)));
  }
  return plan;
}

/// Linear modules: what ModelOpt quantizes. Tables and their projections are not among them.
bool is_linear(const LogicalTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.name.ends_with(".weight") &&
         (tensor.name.starts_with("blk.") || tensor.name == "fc.weight" ||
          tensor.name == "output.weight");
}

bool is_excluded(const LogicalTensor& tensor, std::span<const std::string> excluded) {
  const std::string_view name = tensor.name;
  const std::string_view module = name.substr(0, name.size() - std::string_view(".weight").size());
  return std::any_of(excluded.begin(), excluded.end(), [&](const std::string& pattern) {
    return matches_pattern(pattern, name) || matches_pattern(pattern, module);
  });
}

}  // namespace

CheckpointPlan plan_gguf_copy(const Checkpoint& source) {
  CheckpointPlan plan = every_tensor_for_gguf(source);
  require_whole_blocks(
      plan, source.path, "give another type with `octet quantize`, e.g. --type Q8_0"
  );
  return plan;
}

CheckpointPlan plan_recipe(
    const Checkpoint& source, const Recipe& recipe, std::span<const TypeRule> overrides
) {
  CheckpointPlan plan = every_tensor_for_gguf(source);
  std::vector<TensorFacts> facts;
  for (const PlannedTensor& planned : plan) {
    facts.push_back({planned.source->name, planned.source->shape, planned.dtype});
  }
  const std::vector<TypeChoice> choices = choose_types(recipe, overrides, facts);
  for (size_t i = 0; i < plan.size(); ++i) {
    plan[i].dtype = choices[i].dtype;
    plan[i].fallback = choices[i].fallback;
  }
  require_whole_blocks(plan, source.path, "give it another type with --tensor 'NAME=TYPE'");
  return plan;
}

CheckpointPlan plan_hf_copy(const Checkpoint& source, BlockTypes block_types) {
  CheckpointPlan plan;
  for (const LogicalTensor& tensor : source.tensors()) {
    if (tensor.name != kRopeFrequenciesName) {  // config.json describes it
      plan.push_back(planned_copy(tensor, hf_type(tensor, block_types, source.path)));
    }
  }
  return plan;
}

CheckpointPlan plan_hf_nvfp4(const Checkpoint& source, std::span<const std::string> excluded) {
  CheckpointPlan plan = plan_hf_copy(source, BlockTypes::kDecode);
  std::vector<bool> used(excluded.size(), false);
  for (PlannedTensor& planned : plan) {
    if (!is_linear(*planned.source)) {
      continue;
    }
    for (size_t e = 0; e < excluded.size(); ++e) {
      used[e] = used[e] || is_excluded(*planned.source, excluded.subspan(e, 1));
    }
    if (!is_excluded(*planned.source, excluded)) {
      planned.fallback = planned.source->cols() % kNvfp4Group != 0;
      planned.dtype = planned.fallback ? planned.dtype : DType::kNVFP4ModelOpt;
    }
  }
  const auto idle = std::find(used.begin(), used.end(), false);
  if (idle != used.end()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "'{}' matches no linear module of this checkpoint; `octet inspect --tensors` lists the "
            "names",
            excluded[static_cast<size_t>(idle - used.begin())]
        )
    );
  }
  return plan;
}

int64_t planned_bytes(const PlannedTensor& planned) {
  const int64_t rows = planned.source->rows();
  const int64_t cols = planned.source->cols();
  const int64_t scales = planned.dtype == DType::kNVFP4ModelOpt ? rows * (cols / kNvfp4Group) : 0;
  return rows * row_bytes(planned.dtype, cols) + scales;
}

int64_t planned_bytes(const CheckpointPlan& plan) {
  int64_t bytes = 0;
  for (const PlannedTensor& planned : plan) {
    bytes += planned_bytes(planned);
  }
  return bytes;
}

uint32_t prevailing_file_type(const CheckpointPlan& plan) {
  std::map<DType, int64_t> values;
  for (const PlannedTensor& planned : plan) {
    if (planned.source->shape.size() >= 2) {
      values[planned.dtype] += planned.source->elements();
    }
  }
  const auto most = std::max_element(
      values.begin(), values.end(), [](const auto& a, const auto& b) { return a.second < b.second; }
  );
  const std::optional<Recipe> recipe =
      most == values.end() ? std::nullopt : find_recipe(dtype_facts(most->first).name);
  return recipe ? recipe->file_type : 0;
}

ExportMeter::ExportMeter(const CheckpointPlan& plan, OnExportProgress on_progress)
    : on_progress_(std::move(on_progress)) {
  for (const PlannedTensor& planned : plan) {
    total_bytes_ += static_cast<int64_t>(planned.source->data.size());
  }
}

void ExportMeter::add_rows(const LogicalTensor& tensor, int64_t rows) {
  done_bytes_ += static_cast<int64_t>(tensor.data.size()) / tensor.rows() * rows;
  if (on_progress_) {
    on_progress_({tensor.name, done_bytes_, total_bytes_});
  }
}

}  // namespace octet
