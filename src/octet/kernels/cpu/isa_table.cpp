#include "octet/kernels/cpu/isa_table.h"

#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "octet/base/cpu_features.h"
#include "octet/base/error.h"

// One declaration for each folder of isa/ that was built.
// NOLINTBEGIN(readability-identifier-naming)
#ifdef OCTET_HAVE_ISA_avx512
extern "C" const octet::cpu::KernelTable octet_kernel_table_avx512;
#endif
#ifdef OCTET_HAVE_ISA_avx_vnni
extern "C" const octet::cpu::KernelTable octet_kernel_table_avx_vnni;
#endif
#ifdef OCTET_HAVE_ISA_avx2
extern "C" const octet::cpu::KernelTable octet_kernel_table_avx2;
#endif
#ifdef OCTET_HAVE_ISA_neon_i8mm
extern "C" const octet::cpu::KernelTable octet_kernel_table_neon_i8mm;
#endif
#ifdef OCTET_HAVE_ISA_neon_dotprod
extern "C" const octet::cpu::KernelTable octet_kernel_table_neon_dotprod;
#endif
// NOLINTEND(readability-identifier-naming)

namespace octet::cpu {

std::vector<const KernelTable*> runnable_tables() {
  std::vector<const KernelTable*> tables;
  [[maybe_unused]] const CpuFeatures features = detect_cpu_features();
#ifdef OCTET_HAVE_ISA_avx512
  if (features.avx512) {
    tables.push_back(&octet_kernel_table_avx512);
  }
#endif
#ifdef OCTET_HAVE_ISA_avx_vnni
  if (features.avx_vnni) {
    tables.push_back(&octet_kernel_table_avx_vnni);
  }
#endif
#ifdef OCTET_HAVE_ISA_avx2
  if (features.avx2) {
    tables.push_back(&octet_kernel_table_avx2);
  }
#endif
#ifdef OCTET_HAVE_ISA_neon_i8mm
  if (features.neon_i8mm) {
    tables.push_back(&octet_kernel_table_neon_i8mm);
  }
#endif
#ifdef OCTET_HAVE_ISA_neon_dotprod
  if (features.neon_dotprod) {
    tables.push_back(&octet_kernel_table_neon_dotprod);
  }
#endif
  tables.push_back(&portable_table());
  return tables;
}

const KernelTable& choose_table(std::string_view isa) {
  std::string wanted(isa);
  std::string source = "instruction set";
  if (wanted.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): octet never changes its environment
    if (const char* variable = std::getenv("OCTET_ISA")) {
      wanted = variable;
      source = "OCTET_ISA";
    }
  }
  const std::vector<const KernelTable*> tables = runnable_tables();
  if (wanted.empty()) {
    return *tables.front();
  }
  std::string names;
  for (const KernelTable* table : tables) {
    if (table->name == wanted) {
      return *table;
    }
    names += names.empty() ? "" : ", ";
    names += table->name;
  }
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("{} \"{}\" cannot run on this CPU, which has: {}", source, wanted, names)
  );
}

}  // namespace octet::cpu
