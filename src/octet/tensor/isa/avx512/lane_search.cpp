#include "octet/tensor/lane_search_generic.h"

// The only symbol that leaves this folder. NOLINTNEXTLINE(readability-identifier-naming)
extern "C" constinit const octet::LaneSearch octet_search_table_avx512 = {
    "avx512", &octet::LaneSearcher<8>::affine, &octet::LaneSearcher<16>::symmetric};
