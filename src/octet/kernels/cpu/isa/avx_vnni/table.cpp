#include "octet/kernels/cpu/isa/avx_vnni/matmul.h"
#include "octet/kernels/cpu/isa/avx_vnni/probe.h"
#include "octet/kernels/cpu/isa/avx_vnni/vector.h"
#include "octet/kernels/cpu/kernel_table.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::cpu::KernelTable octet_kernel_table_avx_vnni = {
    "avx_vnni",
    octet::cpu::avx_vnni::kVectorKernels,
    octet::cpu::avx_vnni::kMatmulKernels,
    octet::cpu::avx_vnni::kProbeKernels};
