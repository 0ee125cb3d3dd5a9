// Writes GGUF version 3 in one pass: metadata and tensor infos first, then each tensor's bytes in
// the declared order, in pieces of any size, so that a file much larger than memory can be written.
// Offsets are the exact running sum of padded sizes, as ggml demands. Invariant: the file appears
// under its name complete and synced, or not at all (atomic_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/formats/gguf_reader.h"
#include "octet/tensor/dtype.h"
#include "octet/tensor/metadata.h"

namespace octet {

class TensorStream;

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // outermost first; a matrix is [out, in]
};

class GgufWriter {
 public:
  /// Writes the header. `metadata` is written with general.architecture first, then in key order;
  /// the alignment is its general.alignment (u32) or 32. Throws Error(kInvalidArgument) for what
  /// ggml would not read back: names of 64 bytes or more, duplicates, a type without GGUF id, rows
  /// that are not whole blocks.
  GgufWriter(
      const std::string& path, const Metadata& metadata, const std::vector<TensorSpec>& tensors
  );
  ~GgufWriter();
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;

  /// Tensors come in the declared order; the bytes written between begin and end must be exactly
  /// the tensor's.
  void begin_tensor(const std::string& name);
  void write(std::span<const std::byte> bytes);
  void end_tensor();

  /// begin, write, end.
  void write_tensor(const std::string& name, std::span<const std::byte> bytes);

  /// Syncs the file and gives it its name. Without it nothing remains.
  void finish();

 private:
  std::unique_ptr<TensorStream> stream_;
};

}  // namespace octet
