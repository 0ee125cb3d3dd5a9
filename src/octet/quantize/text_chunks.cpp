#include "octet/quantize/text_chunks.h"

#include <algorithm>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

std::vector<std::vector<TokenId>> cut_chunks(
    std::span<const std::vector<TokenId>> texts,
    TokenId bos,
    const ChunkOptions& options,
    const TargetShape& shape
) {
  if (options.chunk_tokens < 2 || options.chunk_tokens > shape.context_length) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "chunks of {} tokens; expected 2 to the model's context of {}",
            options.chunk_tokens,
            shape.context_length
        )
    );
  }
  std::vector<std::vector<TokenId>> chunks;
  const int64_t own_tokens = options.chunk_tokens - 1;
  for (const std::vector<TokenId>& text : texts) {
    for (int64_t first = 0; first < std::ssize(text); first += own_tokens) {
      if (options.max_chunks > 0 && std::ssize(chunks) == options.max_chunks) {
        return chunks;
      }
      const int64_t count = std::min(own_tokens, std::ssize(text) - first);
      std::vector<TokenId>& chunk = chunks.emplace_back(1, bos);
      chunk.insert(chunk.end(), text.begin() + first, text.begin() + first + count);
    }
  }
  if (chunks.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "there is no text to run; the files are empty");
  }
  return chunks;
}

void run_chunk(
    TargetModel& target,
    std::span<const TokenId> chunk,
    const ChunkRun& run,
    FunctionRef<void(const ForwardRows&)> on_rows
) {
  const auto cache = target.new_cache(std::ssize(chunk), KvType::kBF16);
  ForwardRows out;
  for (int64_t first = 0; first < std::ssize(chunk); first += target.max_rows()) {
    const int64_t count = std::min(target.max_rows(), std::ssize(chunk) - first);
    SequenceRows rows;
    rows.cache = cache.get();
    rows.tokens = chunk.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    rows.feature_rows = count;
    rows.logits_rows = run.all_logits ? count : 0;
    target.forward({&rows, 1}, run.taps, out);
    on_rows(out);
  }
}

}  // namespace octet
