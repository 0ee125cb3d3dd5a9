#include "octet/base/cpu_features.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace octet {

#if defined(__x86_64__)
namespace {

struct CpuidLeaf {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

CpuidLeaf cpuid(uint32_t leaf, uint32_t part = 0) {
  CpuidLeaf r;
  if (__get_cpuid_count(leaf, part, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) {
    return {};
  }
  return r;
}

bool has_all(uint32_t word, uint32_t bits) {
  return (word & bits) == bits;
}

/// The register sets that the operating system saves (XCR0).
uint32_t saved_registers() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

CpuFeatures detect_cpu_features() {
  const CpuidLeaf basic = cpuid(1);
  const CpuidLeaf extended = cpuid(7);
  const CpuidLeaf more = extended.eax >= 1 ? cpuid(7, 1) : CpuidLeaf{};
  CpuFeatures features;
  if (!has_all(basic.ecx, bit_OSXSAVE)) {
    return features;
  }
  constexpr uint32_t kAvxVnni = 1U << 4;     // of leaf 7.1
  constexpr uint32_t kAvx512Bf16 = 1U << 5;  // of leaf 7.1
  constexpr uint32_t kYmm = 0x06;            // XMM and the upper halves of YMM
  constexpr uint32_t kZmm = 0xE6;            // those, masks, upper halves of ZMM, ZMM16..31
  const uint32_t saved = saved_registers();
  features.avx2 = has_all(saved, kYmm) && has_all(basic.ecx, bit_AVX | bit_FMA | bit_F16C) &&
                  has_all(extended.ebx, bit_AVX2 | bit_BMI2);
  features.avx_vnni = features.avx2 && has_all(more.eax, kAvxVnni);
  features.avx512_base =
      features.avx2 && has_all(saved, kZmm) &&
      has_all(extended.ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ);
  features.avx512 = features.avx512_base && has_all(extended.ecx, bit_AVX512VNNI | bit_AVX512VBMI);
  features.avx512_bf16 = features.avx512 && has_all(more.eax, kAvx512Bf16);
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect_cpu_features() {
  CpuFeatures features;
  features.neon_dotprod = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  features.neon_i8mm = features.neon_dotprod && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return features;
}

#else

CpuFeatures detect_cpu_features() {
  return {};
}

#endif

}  // namespace octet
