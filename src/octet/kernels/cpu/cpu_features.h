// Which instruction set generations this CPU and operating system can run. One flag for each folder
// of isa/, true only when every instruction that the folder's compiler flags allow is there
// (src/octet/CMakeLists.txt has the flags). Not about which kernels were built (isa_table.h).
#pragma once

namespace octet::cpu {

struct CpuFeatures {
  bool avx2 = false;          // AVX2, FMA, F16C, BMI2
  bool avx_vnni = false;      // the above and AVX-VNNI
  bool avx512 = false;        // AVX2 and AVX-512 F, BW, VL, DQ, VNNI, VBMI
  bool avx512_bf16 = false;   // the above and AVX-512 BF16: no folder needs it, the probe asks
  bool neon_dotprod = false;  // Armv8.2 dot products
  bool neon_i8mm = false;     // the above and Armv8.6 int8 matrix multiplication
};

CpuFeatures detect_cpu_features();

}  // namespace octet::cpu
