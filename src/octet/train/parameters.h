// The trained weights of a model: tensors under the canonical names of tensor/checkpoint.h, in
// order. Comes from a checkpoint or from an initialisation, and becomes a checkpoint again, so that
// what was trained is written by the same code that writes every other model. Not for frozen
// weights. Invariant: every tensor is a contiguous float leaf that wants a gradient, and shapes are
// those that the metadata call for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/thread_pool.h"
#include "octet/quantize/portable_metadata.h"
#include "octet/tensor/checkpoint.h"
#include "octet/train/tensor.h"

namespace octet::train {

struct Parameter {
  std::string name;  // canonical, "blk.0.attn_q.weight"
  Tensor value;

  bool is_matrix() const { return value.dim() == 2; }
};

class Parameters {
 public:
  void add(std::string name, Tensor value);

  const Tensor& at(std::string_view name) const;  // OCTET_CHECKs that it is there
  const Tensor* find(std::string_view name) const;
  std::span<Parameter> all() { return all_; }
  std::span<const Parameter> all() const { return all_; }
  int64_t count() const;  // numbers in all of them

 private:
  std::vector<Parameter> all_;
};

/// A weight of a checkpoint as a float32 tensor of its shape.
Tensor decoded(const LogicalTensor& tensor);

/// The tensors of the checkpoint that `wanted` says yes to, decoded to float32.
Parameters parameters_of(
    const Checkpoint& checkpoint, const std::function<bool(std::string_view)>& wanted
);

enum class StoredType { kF32, kBF16 };

/// What a model's checkpoint holds beside the trained weights.
struct ModelFrame {
  PortableMetadata portable;
  std::vector<LogicalTensor> fixed;  // weights that do not train; borrowed from `owner`
  std::shared_ptr<const Checkpoint> owner;
};

/// A checkpoint in memory with these weights: matrices as `matrices`, vectors as F32. It opens in a
/// model as one from a file does.
std::shared_ptr<const Checkpoint> as_checkpoint(
    const Parameters& parameters, const ModelFrame& frame, StoredType matrices
);

/// A folder with safetensors (matrices BF16), configuration and tokenizer, replacing one of that
/// name. It opens with open_checkpoint().
void write_model_folder(
    const Parameters& parameters, const ModelFrame& frame, const std::string& path, ThreadPool& pool
);

}  // namespace octet::train
