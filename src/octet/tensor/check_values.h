// The optional check of a weight's values at load time: formats say which scales have no meaning,
// and a corrupt download is best found before it turns logits into NaN. Reads every block, so it
// costs one pass over the file. Not a check of sizes and offsets: readers do that always.
#pragma once

#include "octet/tensor/logical_tensor.h"

namespace octet {

/// Throws Error(kMalformed) naming the tensor and its first bad block: an infinite or NaN value or
/// block scale, an MXFP4 exponent of 255, a ModelOpt block scale that is NaN or negative, or a
/// global or input scale that is not positive and finite.
void check_values(const LogicalTensor& tensor);

}  // namespace octet
