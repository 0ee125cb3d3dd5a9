// Reads the safetensors container: names, types, shapes and where each tensor's bytes lie; single
// files and sharded sets with an index. Knows nothing of models; hf_checkpoint.h translates.
// Invariant: the data section is tiled exactly (no gap, no overlap, nothing after it), names are
// unique, and a shape always matches its byte range. The format promises no alignment: never cast a
// tensor's bytes to a wider type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/mapped_file.h"

namespace octet {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;           // as in the file: "BF16", "F8_E4M3", ...
  std::vector<int64_t> shape;  // outermost first; [] is a scalar
  std::span<const std::byte> data;
};

struct SafetensorsFile {
  std::string path;
  std::shared_ptr<const MappedFile> mapping;                 // null when parsed from memory
  std::map<std::string, std::string, std::less<>> metadata;  // "__metadata__"
  std::vector<SafetensorsTensor> tensors;                    // in the order of their bytes
};

/// True when `bytes` begin like a safetensors file: a plausible header length and then '{'.
bool looks_like_safetensors(std::span<const std::byte> bytes);

/// Parses a whole file in memory; `path` is for messages. The result borrows `bytes`.
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, const std::string& path);

SafetensorsFile read_safetensors(const std::string& path);

/// Reads every shard that an index file ("model.safetensors.index.json") names, and checks that
/// index and shards agree tensor by tensor.
std::vector<SafetensorsFile> read_safetensors_index(const std::string& index_path);

}  // namespace octet
