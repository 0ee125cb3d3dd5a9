#include "octet/tensor/lane_search_generic.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::LaneSearch octet_search_table_avx2 = {
    "avx2", &octet::LaneSearcher<8>::affine, &octet::LaneSearcher<8>::symmetric};
