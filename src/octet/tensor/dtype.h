// The number formats that weights are stored in. DType is the key of every table about them; the
// facts come from the one-header-per-type definitions in types/ through the TypeList (type_list.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octet {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4K,
  kQ5K,
  kQ6K,
  kIQ4NL,
  kIQ4XS,
  kMXFP4,
  kNVFP4,          // ggml layout: 64-value blocks with their four E4M3 scales inside
  kNVFP4ModelOpt,  // ModelOpt layout: codes, block scales and global scale are separate tensors
};
inline constexpr int kDTypeCount = 16;

struct DTypeFacts {
  std::string_view name;  // as users write it: "Q4_K"
  int gguf_id;            // ggml type id; -1 when the type has no GGUF form
  int block_values;       // values in one block along the row
  int block_bytes;        // bytes of one block (codes only for kNVFP4ModelOpt)
};

const DTypeFacts& dtype_facts(DType dtype);
std::optional<DType> dtype_from_gguf_id(int64_t id);
std::optional<DType> dtype_from_name(std::string_view name);  // case-insensitive

/// Bytes of one row of `cols` values; `cols` must be a multiple of block_values.
int64_t row_bytes(DType dtype, int64_t cols);

}  // namespace octet
