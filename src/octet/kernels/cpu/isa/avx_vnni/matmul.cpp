#include "octet/kernels/cpu/isa/avx_vnni/matmul.h"

#include "octet/kernels/cpu/isa/avx_vnni/matmul_lanes.h"
#include "octet/kernels/cpu/matmul/tile_families.h"

namespace octet::cpu::avx_vnni {

constexpr MatmulKernels kMatmulKernels = make_matmul_kernels<Lanes>();

}  // namespace octet::cpu::avx_vnni
