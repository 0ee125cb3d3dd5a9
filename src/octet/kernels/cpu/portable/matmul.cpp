#define OCTET_VECTORS_ARE_ARRAYS
#include "octet/kernels/cpu/portable/matmul.h"

#include "octet/kernels/cpu/matmul/tile_families.h"
#include "octet/kernels/cpu/portable/matmul_lanes.h"

namespace octet::cpu::portable {

constexpr MatmulKernels kMatmulKernels = make_matmul_kernels<Lanes>();

}  // namespace octet::cpu::portable
