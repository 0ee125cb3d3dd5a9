// The ggml type ids that may stand in a GGUF file, with the block sizes that a reader needs to
// check ranges. A superset of DType: types that octet cannot compute with still have a name and a
// size here, for clear messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octet {

struct GgufType {
  std::string_view name;
  int block_values = 0;
  int block_bytes = 0;
};

/// nullopt for unknown ids and for those that ggml has removed.
std::optional<GgufType> gguf_type(int64_t id);

/// The value types of metadata, as numbered in the file.
enum class GgufValueType : int32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

}  // namespace octet
