// Joins the tensors of safetensors files to logical weights: plain BF16/F16/F32 tensors as they
// are, the three or four tensors of an NVFP4 linear layer (ModelOpt and compressed-tensors
// spelling) as one. Invariant: every tensor of the files is used in exactly one weight, or an Error
// names it.
#pragma once

#include <span>
#include <vector>

#include "octet/formats/safetensors_reader.h"
#include "octet/tensor/logical_tensor.h"

namespace octet {

/// Names stay as given: a weight joined from parts is named "<base>.weight".
std::vector<LogicalTensor> join_hf_tensors(std::span<const SafetensorsTensor> tensors);

}  // namespace octet
