// The divisors by which Gemma 4 slows down, or stops, rotary pairs of its full-attention layers:
// the tensor "rope_freqs.weight" that GGUF files carry and Hugging Face files only describe.
#pragma once

#include <cstdint>

#include "octet/tensor/checkpoint.h"
#include "octet/tensor/logical_tensor.h"

namespace octet {

/// Divisors for head_dim / 2 pairs: 1 for the first partial_rotary_factor * head_dim / 2 of them,
/// 1e30 (an angle of zero in effect) for the others. The bytes are owned by
/// `checkpoint`. Throws Error(kMalformed) when the factor is not in (0, 1].
LogicalTensor make_rope_frequencies(
    Checkpoint& checkpoint, int64_t head_dim, double partial_rotary_factor
);

/// The factor that gives such divisors back, also when it is written with nine digits, of a tensor
/// [pairs] of F32. Throws Error(kUnsupported)
/// for divisors of another form, which a Hugging Face folder cannot describe.
double partial_rotary_factor_of(const LogicalTensor& divisors);

inline constexpr double kDefaultPartialRotaryFactor = 0.25;
inline constexpr const char* kRopeFrequenciesName = "rope_freqs.weight";

}  // namespace octet
