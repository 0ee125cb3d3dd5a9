#include "octet/models/weight_loader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/base/page_memory.h"

namespace octet {
namespace {

int64_t stored_bytes(const LogicalTensor& tensor) {
  return static_cast<int64_t>(tensor.data.size() + tensor.block_scales.size());
}

bool is_table(const LogicalTensor& tensor) {
  return tensor.name == "per_layer_token_embd.weight";
}

/// A copy of a table in memory. The file's pages are dropped behind it.
struct MemoryTable {
  PageMemory memory;
  LogicalTensor tensor;

  MemoryTable(const Checkpoint& checkpoint, const LogicalTensor& source)
      : memory(stored_bytes(source), PageAdvice::kHuge, "tables; leave out --no-mmap"),
        tensor(source) {
    std::byte* to = memory.data();
    for (std::span<const std::byte>* part : {&tensor.data, &tensor.block_scales}) {
      std::copy(part->begin(), part->end(), to);
      *part = {to, part->size()};
      to += part->size();
    }
    checkpoint.drop_pages(source);
  }
};

}  // namespace

WeightLoader::WeightLoader(
    const Checkpoint& checkpoint, Ops& ops, LoadProgress progress, TablePlace tables, LoadMode mode
)
    : checkpoint_(checkpoint),
      ops_(ops),
      progress_(std::move(progress)),
      tables_(tables),
      mode_(mode) {
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    total_bytes_ += is_table(tensor) ? 0 : stored_bytes(tensor);
  }
}

std::unique_ptr<Weight> WeightLoader::matrix(std::string_view name, int64_t rows, int64_t cols) {
  const LogicalTensor& tensor = checkpoint_.at(name);
  if (tensor.shape != std::vector<int64_t>{rows, cols}) {
    wrong_shape(tensor, fmt::format("[{}, {}]", rows, cols));
  }
  if (progress_) {
    progress_(name, done_bytes_, total_bytes_);
  }
  std::unique_ptr<Weight> weight;
  try {
    weight = mode_ == LoadMode::kPrepare ? ops_.prepare(checkpoint_, tensor) : count(tensor);
  } catch (Error& error) {
    error.add_context(checkpoint_.path);
    throw;
  }
  done_bytes_ += stored_bytes(tensor);
  weights_bytes_ += weight->resident_bytes;
  return weight;
}

std::unique_ptr<Weight> WeightLoader::count(const LogicalTensor& tensor) const {
  auto weight = std::make_unique<Weight>();
  weight->name = tensor.name;
  weight->dtype = tensor.dtype;
  weight->rows = tensor.rows();
  weight->cols = tensor.cols();
  weight->resident_bytes = ops_.prepared_bytes(tensor);
  return weight;
}

std::vector<float> WeightLoader::vector(std::string_view name, int64_t size) {
  const LogicalTensor& tensor = checkpoint_.at(name);
  if (tensor.elements() != size) {
    wrong_shape(tensor, fmt::format("[{}]", size));
  }
  std::vector<float> values(static_cast<size_t>(size));
  decode_rows(tensor, 0, tensor.rows(), values.data());
  done_bytes_ += stored_bytes(tensor);
  weights_bytes_ += size * static_cast<int64_t>(sizeof(float));
  return values;
}

std::vector<float> WeightLoader::optional_vector(std::string_view name, int64_t size) {
  return has(name) ? vector(name, size) : std::vector<float>();
}

std::shared_ptr<const LogicalTensor> WeightLoader::table(std::string_view name, int64_t cols) {
  const LogicalTensor& tensor = checkpoint_.at(name);
  if (tensor.shape.size() != 2 || tensor.cols() != cols || tensor.rows() == 0) {
    wrong_shape(tensor, fmt::format("[entries, {}]", cols));
  }
  tables_bytes_ += stored_bytes(tensor);
  if (tables_ == TablePlace::kFile || mode_ == LoadMode::kCount) {
    return {std::shared_ptr<const void>(), &tensor};  // the checkpoint owns it
  }
  if (progress_) {
    progress_(name, done_bytes_, total_bytes_);
  }
  const auto copy = std::make_shared<const MemoryTable>(checkpoint_, tensor);
  return {copy, &copy->tensor};
}

void WeightLoader::finish() {
  if (progress_) {
    progress_("", total_bytes_, total_bytes_);
  }
}

void WeightLoader::wrong_shape(const LogicalTensor& tensor, std::string_view expected) const {
  throw Error(
      ErrorKind::kMismatch,
      fmt::format(
          "{}: tensor {} has shape [{}], expected {} from the file's own metadata",
          checkpoint_.path,
          tensor.name,
          fmt::join(tensor.shape, ", "),
          expected
      )
  );
}

}  // namespace octet
