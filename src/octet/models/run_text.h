// A pass of a target over a whole text from an empty cache, in as many forwards as that takes: for
// whoever measures a target or records what it has inside. Not for replies (engine). Invariant:
// what on_rows sees does not depend on how many rows run together.
#pragma once

#include <span>

#include "octet/base/function_ref.h"
#include "octet/base/token.h"
#include "octet/models/target_model.h"

namespace octet {

/// Which rows of a text somebody reads: features of a layer keep all rows going that far.
struct TextRun {
  std::span<const int> taps;  // layers whose features every row gets
  bool all_logits = false;    // and the head over every row
  KvType kv_type = KvType::kBF16;
};

/// on_rows sees what came of the rows, in order, as many at a time as the target takes.
void run_text(
    TargetModel& target,
    std::span<const TokenId> text,
    const TextRun& run,
    FunctionRef<void(const ForwardRows&)> on_rows
);

}  // namespace octet
