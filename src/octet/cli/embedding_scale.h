// Which factor a drafter's token embeddings get: as asked for on the command line, else as its file
// says, else as was measured before with this very pair and stored beside the drafter, else
// measured now and stored. A wrong factor never changes text, only how many drafts are accepted.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "octet/kernels/ops.h"
#include "octet/models/load_model.h"
#include "octet/text/tokenizer.h"

namespace octet::cli {

struct ChosenScale {
  EmbeddingScale scale;
  std::string description;  // "16 (from the file)"
};

struct ScaleInputs {
  std::optional<float> asked;
  const std::shared_ptr<const Checkpoint>& drafter;
  const Tokenizer& tokenizer;
  Ops& ops;
  TargetModel& target;
  const Checkpoint& target_checkpoint;
};

/// As choose_embedding_scale, without measuring: nullopt where it would.
std::optional<ChosenScale> known_embedding_scale(
    std::optional<float> asked, const Checkpoint& drafter, const Checkpoint& target
);

ChosenScale choose_embedding_scale(const ScaleInputs& inputs);

}  // namespace octet::cli
