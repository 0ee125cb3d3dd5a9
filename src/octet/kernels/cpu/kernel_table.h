// Everything the CPU backend needs from one instruction set. portable/ fills every entry and is
// always right; each folder of isa/ fills the same table for one ISA generation, compiled with its
// machine flags and linked so that only the table's symbol leaves the folder
// (cmake/octet_isa.cmake). Invariant: tables are constants, initialised without running code, since
// that code might need a missing instruction.
#pragma once

#include <string_view>

#include "octet/kernels/cpu/matmul_kernels.h"
#include "octet/kernels/cpu/probe_kernels.h"
#include "octet/kernels/cpu/vector_kernels.h"

namespace octet::cpu {

struct KernelTable {
  std::string_view name;        // "portable", "avx2", "avx512", ...
  const VectorKernels& vector;  // norms, rope, attention, elementwise
  const MatmulKernels& matmul;  // one entry a weight type
  const ProbeKernels& probe;    // limits of the machine, for benchmarks
};

const KernelTable& portable_table();

}  // namespace octet::cpu
