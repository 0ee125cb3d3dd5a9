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

}  // namespace octet
