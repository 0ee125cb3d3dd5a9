#include "octet/train/parameters.h"

#include <algorithm>
#include <utility>

#include "octet/base/check.h"
#include "octet/quantize/checkpoint_plan.h"
#include "octet/quantize/hf_export.h"
#include "octet/tensor/encode.h"

namespace octet::train {

void Parameters::add(std::string name, Tensor value) {
  OCTET_CHECK(find(name) == nullptr);
  value = value.detach().contiguous();
  value.set_requires_grad(true);
  all_.push_back({std::move(name), std::move(value)});
}

const Tensor* Parameters::find(std::string_view name) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const Parameter& parameter) {
    return parameter.name == name;
  });
  return found == all_.end() ? nullptr : &found->value;
}

const Tensor& Parameters::at(std::string_view name) const {
  const Tensor* value = find(name);
  OCTET_CHECK(value != nullptr);
  return *value;
}

int64_t Parameters::count() const {
  int64_t numbers = 0;
  for (const Parameter& parameter : all_) {
    numbers += parameter.value.numel();
  }
  return numbers;
}

Tensor decoded(const LogicalTensor& tensor) {
  Tensor values = at::empty(tensor.shape, at::kFloat);
  decode_rows(tensor, 0, tensor.rows(), values.data_ptr<float>());
  return values;
}

Parameters parameters_of(
    const Checkpoint& checkpoint, const std::function<bool(std::string_view)>& wanted
) {
  Parameters parameters;
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    if (wanted(tensor.name)) {
      parameters.add(tensor.name, decoded(tensor));
    }
  }
  return parameters;
}

std::shared_ptr<const Checkpoint> as_checkpoint(
    const Parameters& parameters, const ModelFrame& frame, StoredType matrices
) {
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = "trained weights";
  checkpoint->metadata = frame.portable.metadata;
  checkpoint->storage = frame.portable.storage;
  checkpoint->storage.push_back(frame.owner);
  for (const LogicalTensor& tensor : frame.fixed) {
    checkpoint->add(tensor);
  }
  for (const Parameter& parameter : parameters.all()) {
    const Tensor value = parameter.value.detach().to(at::kFloat).contiguous();
    LogicalTensor tensor;
    tensor.name = parameter.name;
    tensor.shape = value.sizes().vec();
    const bool bf16 = parameter.is_matrix() && matrices == StoredType::kBF16;
    tensor.dtype = bf16 ? DType::kBF16 : DType::kF32;
    const int64_t bytes = tensor.rows() * row_bytes(tensor.dtype, tensor.cols());
    auto data = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
    encode_rows(
        tensor.dtype, value.data_ptr<float>(), tensor.rows(), tensor.cols(), nullptr, data->data()
    );
    tensor.data = *data;
    checkpoint->storage.push_back(std::move(data));
    checkpoint->add(std::move(tensor));
  }
  return checkpoint;
}

void write_model_folder(
    const Parameters& parameters, const ModelFrame& frame, const std::string& path, ThreadPool& pool
) {
  const auto checkpoint = as_checkpoint(parameters, frame, StoredType::kBF16);
  const CheckpointPlan plan = plan_hf_copy(*checkpoint, BlockTypes::kRefuse);
  write_hf_checkpoint(
      {*checkpoint, frame.portable.metadata, plan, path}, kDefaultShardBytes, pool, {}
  );
}

}  // namespace octet::train
