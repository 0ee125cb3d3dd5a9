// Which instruction set generations this CPU and operating system can run: the one place that asks.
// A flag is true only when every instruction that the compiler flags of code for it allow is there
// (src/octet/CMakeLists.txt has the flags). Not about which code was built
// (kernels/cpu/isa_table.h, tensor/lane_search.h).
#pragma once

namespace octet {

struct CpuFeatures {
  bool avx2 = false;          // AVX2, FMA, F16C, BMI2
  bool avx_vnni = false;      // the above and AVX-VNNI
  bool avx512_base = false;   // AVX2 and AVX-512 F, BW, VL, DQ
  bool avx512 = false;        // the above and AVX-512 VNNI, VBMI
  bool avx512_bf16 = false;   // the above and AVX-512 BF16: no folder needs it, the probe asks
  bool neon_dotprod = false;  // Armv8.2 dot products
  bool neon_i8mm = false;     // the above and Armv8.6 int8 matrix multiplication
};

CpuFeatures detect_cpu_features();

}  // namespace octet
