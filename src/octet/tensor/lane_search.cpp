#include "octet/tensor/lane_search.h"

#include "octet/base/cpu_features.h"
#include "octet/tensor/lane_search_generic.h"

// One declaration for each instruction set of isa/ that was built.
// NOLINTBEGIN(readability-identifier-naming)
#ifdef OCTET_HAVE_SEARCH_avx512
extern "C" const octet::LaneSearch octet_search_table_avx512;
#endif
#ifdef OCTET_HAVE_SEARCH_avx2
extern "C" const octet::LaneSearch octet_search_table_avx2;
#endif
// NOLINTEND(readability-identifier-naming)

namespace octet {

namespace {

// Vectors of the baseline of every 64-bit CPU.
constexpr LaneSearch kBaseline = {
    "baseline", &LaneSearcher<4>::affine, &LaneSearcher<4>::symmetric};

}  // namespace

std::vector<const LaneSearch*> runnable_lane_searches() {
  std::vector<const LaneSearch*> searches;
  [[maybe_unused]] const CpuFeatures features = detect_cpu_features();
#ifdef OCTET_HAVE_SEARCH_avx512
  if (features.avx512_base) {
    searches.push_back(&octet_search_table_avx512);
  }
#endif
#ifdef OCTET_HAVE_SEARCH_avx2
  if (features.avx2) {
    searches.push_back(&octet_search_table_avx2);
  }
#endif
  searches.push_back(&kBaseline);
  return searches;
}

const LaneSearch& lane_search() noexcept {
  static const LaneSearch& best = *runnable_lane_searches().front();
  return best;
}

}  // namespace octet
