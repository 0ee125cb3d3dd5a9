// Text for measuring models: tokens cut into chunks that each start from nothing, as the public
// tools for perplexity and importance do. Invariant: every token of the texts stands in one chunk,
// in order, until there are enough chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

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

}  // namespace octet
