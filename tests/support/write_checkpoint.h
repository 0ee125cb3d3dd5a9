// Writes a checkpoint in memory to a GGUF file, as a converter would, for tests that need files.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "octet/formats/gguf_writer.h"
#include "octet/tensor/checkpoint.h"

namespace octet::test {

inline void write_gguf(
    const std::string& path, const Metadata& metadata, std::span<const LogicalTensor> tensors
) {
  std::vector<TensorSpec> specs;
  for (const LogicalTensor& tensor : tensors) {
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  GgufWriter writer(path, metadata, specs);
  for (const LogicalTensor& tensor : tensors) {
    writer.write_tensor(tensor.name, tensor.data);
  }
  writer.finish();
}

/// The checkpoint in `count` parts; the first holds the metadata and no tensor, as splitting tools
/// write it. Returns the paths.
inline std::vector<std::string> write_gguf_parts(
    const std::string& prefix, const Checkpoint& checkpoint, int count
) {
  const std::span<const LogicalTensor> tensors = checkpoint.tensors();
  std::vector<std::string> paths;
  for (int part = 0; part < count; ++part) {
    Metadata metadata = part == 0 ? checkpoint.metadata : Metadata();
    metadata.set("split.no", static_cast<uint16_t>(part));
    metadata.set("split.count", static_cast<uint16_t>(count));
    metadata.set("split.tensors.count", static_cast<int32_t>(tensors.size()));
    const size_t parts_with_tensors = static_cast<size_t>(count) - 1;
    const size_t begin =
        part == 0 ? 0 : tensors.size() * static_cast<size_t>(part - 1) / parts_with_tensors;
    const size_t end =
        part == 0 ? 0 : tensors.size() * static_cast<size_t>(part) / parts_with_tensors;
    paths.push_back(gguf_part_path(prefix, part, count));
    write_gguf(paths.back(), metadata, tensors.subspan(begin, end - begin));
  }
  return paths;
}

}  // namespace octet::test
