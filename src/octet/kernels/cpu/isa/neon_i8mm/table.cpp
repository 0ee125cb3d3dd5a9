#include "octet/kernels/cpu/isa/neon_i8mm/matmul.h"
#include "octet/kernels/cpu/isa/neon_i8mm/probe.h"
#include "octet/kernels/cpu/isa/neon_i8mm/vector.h"
#include "octet/kernels/cpu/kernel_table.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::cpu::KernelTable octet_kernel_table_neon_i8mm = {
    "neon_i8mm",
    octet::cpu::neon_i8mm::kVectorKernels,
    octet::cpu::neon_i8mm::kMatmulKernels,
    octet::cpu::neon_i8mm::kProbeKernels};
