// Reads the GGUF container, versions 2 and 3: metadata, tensor infos and where each tensor's bytes
// lie. Knows bytes and offsets, never layers; the translation to a Checkpoint is gguf_checkpoint.h.
// Invariant: every length is compared with the bytes that remain before it is used or allocated, in
// checked 64-bit arithmetic, so that a hostile file can only cause an Error that names file, key or
// tensor, and the expectation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/mapped_file.h"
#include "octet/tensor/metadata.h"

namespace octet {

inline constexpr uint32_t kGgufDefaultAlignment = 32;

struct GgufTensor {
  std::string name;
  int type_id = 0;             // ggml type id, see gguf_types.h
  std::vector<int64_t> shape;  // outermost first: the reverse of the order in the file
  uint64_t offset = 0;         // from the start of the data section
  std::span<const std::byte> data;
};

struct GgufFile {
  std::string path;
  std::shared_ptr<const MappedFile> mapping;  // null when parsed from memory
  uint32_t version = 0;
  uint32_t alignment = kGgufDefaultAlignment;
  uint64_t data_start = 0;
  Metadata metadata;  // strings inside arrays are views of the file's bytes
  std::vector<GgufTensor> tensors;
};

/// True when `bytes` begin like a GGUF file of any version or byte order.
bool looks_like_gguf(std::span<const std::byte> bytes);

/// Parses a whole GGUF file in memory; `path` is for messages. The result borrows `bytes`.
GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& path);

GgufFile read_gguf(const std::string& path);

/// Reads all parts of a split file in order, starting at part 0, whichever part `path` names; a
/// file that is not split is one part. Checks that the parts belong together and that no tensor is
/// there twice.
std::vector<GgufFile> read_gguf_parts(const std::string& path);

/// "<prefix>-00001-of-00003.gguf" for index 0 of 3.
std::string gguf_part_path(std::string_view prefix, int index, int count);

}  // namespace octet
