// The choice of kernels: which instruction sets were built and can run here, and which one to use.
// Made once, when the backend is created; nothing else asks what the CPU is.
#pragma once

#include <string_view>
#include <vector>

#include "octet/kernels/cpu/kernel_table.h"

namespace octet::cpu {

/// Every table that this CPU can run, best first; the last is portable.
std::vector<const KernelTable*> runnable_tables();

/// The table called `isa`; when that is empty, the one that the environment variable OCTET_ISA
/// names; when that is empty too, the best. Throws Error(kUnsupported) listing the runnable ones
/// when the name is not among them.
const KernelTable& choose_table(std::string_view isa);

}  // namespace octet::cpu
