#include "octet/models/weight_loader.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"

namespace octet {
namespace {

int64_t stored_bytes(const LogicalTensor& tensor) {
  return static_cast<int64_t>(tensor.data.size() + tensor.block_scales.size());
}

bool is_table(const LogicalTensor& tensor) {
  return tensor.name == "per_layer_token_embd.weight";
}

}  // namespace

WeightLoader::WeightLoader(const Checkpoint& checkpoint, Ops& ops, LoadProgress progress)
    : checkpoint_(checkpoint), ops_(ops), progress_(std::move(progress)) {
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
    weight = ops_.prepare(checkpoint_, tensor);
  } catch (Error& error) {
    error.add_context(checkpoint_.path);
    throw;
  }
  done_bytes_ += stored_bytes(tensor);
  weights_bytes_ += weight->resident_bytes;
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

const LogicalTensor* WeightLoader::table(std::string_view name, int64_t cols) {
  const LogicalTensor& tensor = checkpoint_.at(name);
  if (tensor.shape.size() != 2 || tensor.cols() != cols || tensor.rows() == 0) {
    wrong_shape(tensor, fmt::format("[entries, {}]", cols));
  }
  tables_bytes_ += stored_bytes(tensor);
  return &tensor;
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
