#include "octet/kernels/cpu/isa/neon_i8mm/matmul.h"

#include "octet/kernels/cpu/isa/neon_i8mm/matmul_lanes.h"
#include "octet/kernels/cpu/matmul/tile_families.h"

namespace octet::cpu::neon_i8mm {

constexpr MatmulKernels kMatmulKernels = make_matmul_kernels<Lanes>();

}  // namespace octet::cpu::neon_i8mm
