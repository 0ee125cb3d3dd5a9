#include "octet/kernels/cpu/isa/avx2/matmul.h"
#include "octet/kernels/cpu/isa/avx2/probe.h"
#include "octet/kernels/cpu/isa/avx2/vector.h"
#include "octet/kernels/cpu/kernel_table.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::cpu::KernelTable octet_kernel_table_avx2 = {
    "avx2",
    octet::cpu::avx2::kVectorKernels,
    octet::cpu::avx2::kMatmulKernels,
    octet::cpu::avx2::kProbeKernels};
