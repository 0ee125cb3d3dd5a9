#include "octet/kernels/cpu/isa/avx512/matmul.h"
#include "octet/kernels/cpu/isa/avx512/probe.h"
#include "octet/kernels/cpu/isa/avx512/vector.h"
#include "octet/kernels/cpu/kernel_table.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::cpu::KernelTable octet_kernel_table_avx512 = {
    "avx512",
    octet::cpu::avx512::kVectorKernels,
    octet::cpu::avx512::kMatmulKernels,
    octet::cpu::avx512::kProbeKernels};
