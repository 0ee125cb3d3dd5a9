#include "octet/kernels/cpu/kernel_table.h"
#include "octet/kernels/cpu/portable/matmul.h"
#include "octet/kernels/cpu/portable/probe.h"
#include "octet/kernels/cpu/portable/vector.h"

namespace octet::cpu {

const KernelTable& portable_table() {
  static constexpr KernelTable kTable = {
      "portable", portable::kVectorKernels, portable::kMatmulKernels, portable::kProbeKernels};
  return kTable;
}

}  // namespace octet::cpu
