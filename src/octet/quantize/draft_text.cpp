#include "octet/quantize/draft_text.h"

#include <algorithm>

#include "octet/models/run_text.h"

namespace octet {
namespace {

/// The token that the head puts first in a row of logits.
TokenId best_token(const DraftShape& shape, const float* logits) {
  const int64_t column = std::max_element(logits, logits + shape.vocabulary) - logits;
  return shape.tokens.empty() ? static_cast<TokenId>(column)
                              : shape.tokens[static_cast<size_t>(column)];
}

}  // namespace

DraftText::DraftText(
    TargetModel& target,
    std::span<const int> taps,
    std::span<const std::vector<TokenId>> chunks,
    const OnChunk& on_chunk
)
    : width_(static_cast<int64_t>(taps.size()) * target.shape().hidden) {
  for (const std::vector<TokenId>& tokens : chunks) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.tokens = tokens;
    run_text(target, tokens, {.taps = taps}, [&](const ForwardRows& out) {
      for (int64_t r = 0; r < out.features.rows; ++r) {
        const float* row = out.features.row(r);
        chunk.features.insert(chunk.features.end(), row, row + width_);
      }
    });
    if (on_chunk) {
      on_chunk(std::ssize(chunks_), std::ssize(chunks));
    }
  }
}

int64_t DraftText::tokens() const {
  int64_t count = 0;
  for (const Chunk& chunk : chunks_) {
    count += std::ssize(chunk.tokens);
  }
  return count;
}

void DraftText::play(DraftModel& drafter) const {
  for (const Chunk& chunk : chunks_) {
    play_chunk(drafter, chunk);
  }
}

void DraftText::play_chunk(DraftModel& drafter, const Chunk& chunk) const {
  const DraftShape& shape = drafter.shape();
  const int64_t drafts = shape.block - 1;
  const int64_t length = std::ssize(chunk.tokens);
  const auto cache = drafter.new_cache(length + shape.block);
  std::vector<float> buffer(static_cast<size_t>(drafts * shape.vocabulary));
  const Rows logits{buffer.data(), drafts, shape.vocabulary, shape.vocabulary};
  int64_t injected = 0;
  for (int64_t anchor = 1; anchor < length;) {
    drafter.inject(
        *cache, {chunk.features.data() + injected * width_, anchor - injected, width_, width_}
    );
    injected = anchor;
    const DraftRequest request{cache.get(), chunk.tokens[static_cast<size_t>(anchor)]};
    drafter.draft({&request, 1}, logits);
    int64_t next = anchor + 1;
    while (next < length && next - anchor <= drafts &&
           chunk.tokens[static_cast<size_t>(next)] ==
               best_token(shape, logits.row(next - anchor - 1))) {
      ++next;
    }
    anchor = next;
  }
}

}  // namespace octet
