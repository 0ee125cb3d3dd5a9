// What a drafter file is worth on recorded features (feature_file.h), without the target's layers,
// and why a figure is low: the same replay with one thing about the drafter changed at a time. Not
// for speed. Invariant: the drafter as it is gets the acceptance that it has in use, as far as the
// recorded features are exact.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/engine/acceptance_statistics.h"
#include "octet/engine/recorded_replay.h"
#include "octet/evaluate/feature_file.h"
#include "octet/kernels/ops.h"
#include "octet/models/load_model.h"
#include "octet/models/target_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

struct FeatureReplayRequest {
  const FeatureFile& file;
  std::shared_ptr<const Checkpoint> drafter;
  EmbeddingScale embedding_scale;
  std::shared_ptr<const Checkpoint> other;  // the same drafter in another type; null: none
  Ops& ops;
  TargetModel& vocabulary;  // embedding and head: LentVocabulary is enough
  std::span<const TokenId> stop_tokens;
  std::span<const TokenId> suppressed_tokens;  // of the tokenizer: never chosen
  int64_t stride = 0;                          // see RecordedReplayOptions
  int64_t limit = 0;                           // records; 0: all
  bool attribute = true;
  std::shared_ptr<const Checkpoint> draft_head = nullptr;  // to draft with; null: the pair's
  KvType kv_type = KvType::kBF16;                          // of the drafter's context
};

/// One thing changed.
struct FeatureTrial {
  std::string name;  // "embedding scale 16", "taps in reverse order"
  AcceptanceStatistics found;
};

struct FeatureReplay {
  int64_t records = 0;
  AcceptanceStatistics all;
  AcceptanceStatistics thinking;  // of replies that the template asked to think
  AcceptanceStatistics speaking;  // of the others
  std::vector<FeatureTrial> trials;

  /// The trial that is clearly better than the drafter as it is; null: none.
  const FeatureTrial* clearly_better() const;
  /// Of thinking replies and others, those whose drafts are accepted clearly less often; null:
  /// neither, or too few steps of one kind to say.
  const AcceptanceStatistics* clearly_worse_kind() const;
};

/// The acceptance of a drafter along record i of a file, which has features of the layers `taps`.
/// `suppressed_tokens`: of the tokenizer, never chosen. Throws Error(kMismatch) where drafter,
/// vocabulary and record do not belong together.
AcceptanceStatistics replay_record(
    const FeatureFile& file,
    int64_t i,
    const ReplayVariant& variant,
    std::span<const int> taps,
    std::span<const TokenId> suppressed_tokens,
    const RecordedReplayOptions& options
);

/// on_trial is called before each pass over the records, with its name. Throws Error(kMismatch)
/// where drafter, vocabulary and records do not belong together.
FeatureReplay replay_features(
    const FeatureReplayRequest& request, FunctionRef<void(const std::string& trial)> on_trial
);

}  // namespace octet
