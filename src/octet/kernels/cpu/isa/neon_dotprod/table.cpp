#include "octet/kernels/cpu/isa/neon_dotprod/matmul.h"
#include "octet/kernels/cpu/isa/neon_dotprod/probe.h"
#include "octet/kernels/cpu/isa/neon_dotprod/vector.h"
#include "octet/kernels/cpu/kernel_table.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::cpu::KernelTable octet_kernel_table_neon_dotprod = {
    "neon_dotprod",
    octet::cpu::neon_dotprod::kVectorKernels,
    octet::cpu::neon_dotprod::kMatmulKernels,
    octet::cpu::neon_dotprod::kProbeKernels};
