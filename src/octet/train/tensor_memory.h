// Where the tensors of a training run lie. A step allocates what the one before it did, so large
// blocks are kept and used again, in huge pages: with pages given back to the system and cleared
// for every tensor, a step of a small model takes about half as long again. Not for small tensors,
// which malloc keeps well. Invariant: memory never shrinks, and is what the largest step needed.
#pragma once

namespace octet::train {

/// From now on for all tensors of the process, libtorch's own too. Call once, before the first.
void keep_tensor_memory();

}  // namespace octet::train
