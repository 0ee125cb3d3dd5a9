// MXFP4: 32 values share one power-of-two scale. [u8 e][16 B E2M1 codes]
//   y = 2^(e - 127) * E2M1[q]
// e = 255 has no meaning and decodes to NaN; check_values refuses it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "octet/tensor/dtype.h"
#include "octet/tensor/quantize_search.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/encode_context.h"

namespace octet::types {

struct MXFP4 {
  static constexpr DType kDType = DType::kMXFP4;
  static constexpr DTypeFacts kFacts{"MXFP4", 39, 32, 17};

  static void decode(const std::byte* block, float* out) noexcept {
    const float half_scale = half_of_scale(load_u8(block));
    for_each_code<16>(block + 1, [&](int j, int q) {
      out[j] = half_scale * (2.0F * kE2M1Values[q]);
    });
  }

  /// 2^(e - 128): half the scale, because the doubled code is an integer and 2^128 does not exist
  /// in float32.
  static float half_of_scale(uint8_t e) noexcept {
    if (e == 255) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    const bool subnormal = e < 2;  // 2^-128 and 2^-127
    const uint32_t exponent = e;
    return std::bit_cast<float>(subnormal ? 0x00200000U << exponent : (exponent - 1U) << 23);
  }

  static void encode(const float* values, const EncodeContext&, std::byte* block) noexcept {
    const float largest = std::fabs(largest_magnitude({values, 32}));
    // log2 in float32, as the reference has it: just below a large power of two it rounds up to it.
    const float exponent = std::floor(std::log2(largest)) - 2.0F + 127.0F;
    const auto e =
        largest > 0.0F ? static_cast<uint8_t>(std::clamp(exponent, 0.0F, 254.0F)) : uint8_t{0};
    const float half_scale = half_of_scale(e);
    std::array<uint8_t, 32> codes{};
    for (size_t j = 0; j < codes.size(); ++j) {
      codes[j] = nearest_e2m1(values[j], half_scale);
    }
    *block = static_cast<std::byte>(e);
    pack_codes<16>(codes.data(), block + 1);
  }

  static bool is_valid(const std::byte* block) noexcept {
    constexpr uint8_t kAlwaysFinite = 252;  // 6 * 2^125
    if (load_u8(block) <= kAlwaysFinite) {
      return true;
    }
    std::array<float, 32> values{};
    decode(block, values.data());
    return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
  }
};

}  // namespace octet::types
