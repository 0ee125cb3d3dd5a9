// How far one target is from another on a text: what quantizing a model cost. Both run the same
// chunks; every row's logits and every layer's output are compared. Not for drafters, whose measure
// is the acceptance of their drafts (engine/acceptance_replay.h). Invariant: figures do not depend
// on how many rows run together; comparing a model with itself gives zeros and full agreement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "octet/models/target_model.h"
#include "octet/quantize/text_chunks.h"

namespace octet {

/// All in nats. The first model is the reference.
struct TargetComparison {
  int64_t rows = 0;               // positions with logits
  int64_t predicted = 0;          // those whose next token is known
  double mean_kl = 0.0;           // KL divergence of the second from the first
  double top1_agreement = 0.0;    // share of rows with the same best token
  double perplexity_first = 0.0;  // exp of the mean negative log-probability of the next token
  double perplexity_second = 0.0;
  double logit_rms = 0.0;            // root of the mean squared difference of logits
  std::vector<double> layer_errors;  // by layer: RMS of the difference over RMS of the first
  std::vector<float> sorted_kl;      // by row, ascending

  /// The KL divergence that the share `quantile` of the rows does not exceed.
  double kl_quantile(double quantile) const;
};

/// Throws Error(kMismatch) when vocabularies, hidden sizes or layers differ, and as cut_chunks
/// does.
TargetComparison compare_targets(
    TargetModel& first,
    TargetModel& second,
    std::span<const std::vector<TokenId>> texts,
    TokenId bos,
    const ChunkOptions& options,
    const OnChunk& on_chunk
);

}  // namespace octet
