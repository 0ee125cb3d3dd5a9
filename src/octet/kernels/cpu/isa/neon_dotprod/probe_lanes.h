// The vector operations of the machine-limit probes (probe_generic.h) in NEON registers. Include
// only from files compiled for dotprod.
#pragma once

#include <arm_neon.h>
#include <cstdint>

namespace octet::cpu::neon_dotprod {

struct Probe {
  using Integers = int32x4_t;
  using Floats = float32x4_t;
  static constexpr int64_t kDotOperations = 32;  // 16 multiplications and 16 additions
  static constexpr int64_t kFloatOperations = 8;

  static Integers zero_integers() { return vdupq_n_s32(0); }
  static Integers load(const void* from) { return vld1q_s32(static_cast<const int32_t*>(from)); }
  static Integers combine(Integers x, Integers y) { return veorq_s32(x, y); }
  static uint64_t fold(Integers x) {
    const uint64x2_t halves = vreinterpretq_u64_s32(x);
    return vgetq_lane_u64(halves, 0) + vgetq_lane_u64(halves, 1);
  }
  static Integers ramp() { return vdupq_n_s32(0x04030201); }
  static Integers dot(Integers sum, Integers x, Integers y) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y));
  }
  static Floats zero_floats() { return vdupq_n_f32(0.0F); }
  static Floats half() { return vdupq_n_f32(0.5F); }
  static Floats multiply_add(Floats sum, Floats x, Floats y) { return vfmaq_f32(sum, x, y); }
};

}  // namespace octet::cpu::neon_dotprod
