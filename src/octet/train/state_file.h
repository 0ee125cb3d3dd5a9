// The state of a training run between two steps as one safetensors file, float32 as they are. Not
// for models that run: those are written by quantize/hf_export.h. Invariant: the file appears
// complete or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/formats/safetensors_reader.h"
#include "octet/train/tensor.h"

namespace octet::train {

struct NamedTensor {
  std::string name;
  Tensor value;  // float32
};

struct StateFacts {
  std::string run;    // describes the run that the state belongs to
  std::string notes;  // of the caller
  int64_t next_step = 0;
};

void write_state_file(
    const std::string& path, const std::vector<NamedTensor>& tensors, const StateFacts& facts
);

struct StateFile {
  SafetensorsFile file;
  StateFacts facts;

  /// Throws Error(kMismatch) when there is no such tensor or it has another shape.
  void copy_to(std::string_view name, Tensor to) const;
};

/// Throws Error for what is no state file.
StateFile read_state_file(const std::string& path);

}  // namespace octet::train
