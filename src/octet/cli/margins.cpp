#include "octet/cli/margins.h"

#include <algorithm>
#include <limits>

namespace octet::cli {
namespace {

float lead(const float* logits, int64_t count) {
  float best = -std::numeric_limits<float>::infinity();
  float second = best;
  for (int64_t i = 0; i < count; ++i) {
    if (logits[i] > best) {
      second = best;
      best = logits[i];
    } else if (logits[i] > second) {
      second = logits[i];
    }
  }
  return best - second;
}

}  // namespace

std::vector<float> top_margins(
    TargetModel& target, KvType kv_type, std::span<const TokenId> text, int64_t prompt_length
) {
  constexpr int64_t kChunk = 32;                            // bounds the logits held at once
  const auto rows = static_cast<int64_t>(text.size()) - 1;  // the last token is not an input
  const auto cache = target.new_cache(std::max<int64_t>(rows, 1), kv_type);
  std::vector<float> margins;
  ForwardRows out;
  for (int64_t begin = 0; begin < rows;) {
    const int64_t count = std::min({kChunk, rows - begin, target.max_rows()});
    SequenceRows chunk;
    chunk.cache = cache.get();
    chunk.tokens = text.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
    chunk.logits_rows = std::clamp<int64_t>(begin + count - (prompt_length - 1), 0, count);
    target.forward({&chunk, 1}, {}, out);
    for (int64_t row = 0; row < chunk.logits_rows; ++row) {
      margins.push_back(lead(out.logits.row(row), out.logits.cols));
    }
    begin += count;
  }
  return margins;
}

}  // namespace octet::cli
