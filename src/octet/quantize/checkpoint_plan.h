// What every tensor of a checkpoint is to become in a new file, decided before a byte is written:
// types from a recipe or kept, importance by tensor, sizes. Not for writing (gguf_export.h,
// hf_export.h). Invariant: a plan holds every tensor of its source once, in the source's order, in
// types that the file format can hold.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/quantize/recipe.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct PlannedTensor {
  const LogicalTensor* source = nullptr;
  DType dtype = DType::kBF16;
  bool fallback = false;              // its rows did not fit the type that was asked for
  std::span<const float> importance;  // [cols], or empty
};

using CheckpointPlan = std::vector<PlannedTensor>;

/// Every weight keeps its type, except that GGUF wants F32 vectors and its own layout of NVFP4.
CheckpointPlan plan_gguf_copy(const Checkpoint& source);

/// Types by a recipe.
CheckpointPlan plan_recipe(
    const Checkpoint& source, const Recipe& recipe, std::span<const TypeRule> overrides
);

enum class BlockTypes { kRefuse, kDecode };

/// Every weight keeps its values: floats as they are, F32 vectors as BF16 where no value changes,
/// NVFP4 in ModelOpt's layout. Safetensors have no form for other block types: refused with
/// Error(kUnsupported) naming the first, or decoded to BF16.
CheckpointPlan plan_hf_copy(const Checkpoint& source, BlockTypes block_types);

/// The matrices inside layers, the fusion and the head, less those that match one of `excluded`
/// (patterns over canonical names), become NVFP4 of ModelOpt; the rest is kept as plan_hf_copy
/// does.
CheckpointPlan plan_hf_nvfp4(const Checkpoint& source, std::span<const std::string> excluded);

/// Bytes of the tensors when written.
int64_t planned_bytes(const CheckpointPlan& plan);
int64_t planned_bytes(const PlannedTensor& planned);

/// The value of general.file_type for the type that most values of matrices have.
uint32_t prevailing_file_type(const CheckpointPlan& plan);

/// Told while tensors are written. Bytes are those of the source.
struct ExportProgress {
  std::string_view tensor;
  int64_t done_bytes = 0;
  int64_t total_bytes = 0;
};
using OnExportProgress = std::function<void(const ExportProgress&)>;

/// Adds up source bytes and tells them.
class ExportMeter {
 public:
  ExportMeter(const CheckpointPlan& plan, OnExportProgress on_progress);
  /// Bytes of `tensor` that a piece of `rows` rows took from the source.
  void add_rows(const LogicalTensor& tensor, int64_t rows);

 private:
  OnExportProgress on_progress_;
  int64_t done_bytes_ = 0;
  int64_t total_bytes_ = 0;
};

}  // namespace octet
