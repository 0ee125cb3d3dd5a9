#include "octet/kernels/cpu/isa/avx512/matmul.h"

#include "octet/kernels/cpu/isa/avx512/matmul_lanes.h"
#include "octet/kernels/cpu/matmul/tile_families.h"

namespace octet::cpu::avx512 {

constexpr MatmulKernels kMatmulKernels = make_matmul_kernels<Lanes>();

}  // namespace octet::cpu::avx512
