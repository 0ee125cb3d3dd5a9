#include "octet/kernels/cpu/isa/neon_dotprod/matmul.h"

#include "octet/kernels/cpu/isa/neon_dotprod/matmul_lanes.h"
#include "octet/kernels/cpu/matmul/tile_families.h"

namespace octet::cpu::neon_dotprod {

constexpr MatmulKernels kMatmulKernels = make_matmul_kernels<Lanes>();

}  // namespace octet::cpu::neon_dotprod
