#include "octet/models/run_text.h"

#include <algorithm>

namespace octet {

void run_text(
    TargetModel& target,
    std::span<const TokenId> text,
    const TextRun& run,
    FunctionRef<void(const ForwardRows&)> on_rows
) {
  const auto cache = target.new_cache(std::ssize(text), run.kv_type);
  ForwardRows out;
  for (int64_t first = 0; first < std::ssize(text); first += target.max_rows()) {
    const int64_t count = std::min(target.max_rows(), std::ssize(text) - first);
    SequenceRows rows;
    rows.cache = cache.get();
    rows.tokens = text.subspan(static_cast<size_t>(first), static_cast<size_t>(count));
    rows.feature_rows = count;
    rows.logits_rows = run.all_logits ? count : 0;
    target.forward({&rows, 1}, run.taps, out);
    on_rows(out);
  }
}

}  // namespace octet
