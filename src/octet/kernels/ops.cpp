#include "octet/kernels/ops.h"

namespace octet {

std::string_view kv_type_name(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "f32";
    case KvType::kBF16:
      return "bf16";
    case KvType::kQ8:
      break;
  }
  return "q8_0";
}

std::string_view activation_mode_name(ActivationMode mode) {
  switch (mode) {
    case ActivationMode::kAuto:
      return "auto";
    case ActivationMode::kFast:
      return "fast";
    case ActivationMode::kW4A16:
      return "w4a16";
    case ActivationMode::kW4A4:
      break;
  }
  return "w4a4";
}

int64_t kv_row_bytes(KvType type, int64_t head_dim) {
  const int64_t width = kv_row_width(head_dim);
  switch (type) {
    case KvType::kF32:
      return 4 * width;
    case KvType::kBF16:
      return 2 * width;
    case KvType::kQ8:
      break;
  }
  return width + width / 32 * 2;
}

}  // namespace octet
