// Text for measuring models: tokens cut into chunks that each start from nothing, as the public
// tools for perplexity and importance do. Invariant: every token of the texts stands in one chunk,
// in order, until there are enough chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/base/token.h"
#include "octet/models/target_model.h"

namespace octet {

struct ChunkOptions {
  int64_t chunk_tokens = 512;  // the begin token included
  int64_t max_chunks = 0;      // 0: all
};

using OnChunk = std::function<void(int64_t done, int64_t chunks)>;

/// Cuts `texts` (without begin tokens) into chunks that begin with `bos`; the last of a text may be
/// shorter. Throws Error(kInvalidArgument) when there is nothing, or when a chunk would not fit the
/// context of a model of `shape`.
std::vector<std::vector<TokenId>> cut_chunks(
    std::span<const std::vector<TokenId>> texts,
    TokenId bos,
    const ChunkOptions& options,
    const TargetShape& shape
);

/// Which rows of a chunk somebody reads: features of a layer keep all rows going that far.
struct ChunkRun {
  std::span<const int> taps;  // layers whose features every row gets
  bool all_logits = false;    // and the head over every row
};

/// Runs a chunk from an empty cache, as many rows at a time as the target takes; on_rows sees what
/// came of them, in order.
void run_chunk(
    TargetModel& target,
    std::span<const TokenId> chunk,
    const ChunkRun& run,
    FunctionRef<void(const ForwardRows&)> on_rows
);

}  // namespace octet
