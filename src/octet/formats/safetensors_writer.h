// Writes one safetensors file in one pass: the header first, then each tensor's bytes in the
// declared order. Invariant: the file appears under its name complete and synced, or not at all
// (atomic_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace octet {

class TensorStream;

struct SafetensorsSpec {
  std::string name;
  std::string dtype;           // "BF16", "F32", "U8", "F8_E4M3", ...
  std::vector<int64_t> shape;  // outermost first; [] is a scalar
};

class SafetensorsWriter {
 public:
  /// Throws Error(kInvalidArgument) for a duplicate name, an unknown dtype or a shape whose size
  /// overflows.
  SafetensorsWriter(
      const std::string& path,
      const std::vector<SafetensorsSpec>& tensors,
      const std::map<std::string, std::string, std::less<>>& metadata = {}
  );
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

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
