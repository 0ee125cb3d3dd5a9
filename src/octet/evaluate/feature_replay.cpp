#include "octet/evaluate/feature_replay.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/models/dflash/config.h"
#include "octet/speculation/drafters/dflash_drafter.h"

namespace octet {
namespace {

/// A trial counts as better from this factor on: fewer tokens than that are chance.
constexpr double kClearly = 1.1;
constexpr int64_t kStepsToCompare = 50;  // of a kind of replies: fewer say nothing
constexpr const char* kWindowKey = "dflash.attention.sliding_window";
/// Longer than any text.
constexpr int64_t kNoWindow = int64_t{1} << 24;

/// A drafter as it is, or with one thing changed.
struct Variant {
  std::string name;
  std::shared_ptr<const Checkpoint> drafter;
  EmbeddingScale embedding_scale;
  std::vector<int> taps;  // whose features it is given
};

class Replayer {
 public:
  explicit Replayer(const FeatureReplayRequest& request)
      : request_(request), config_(read_dflash_config(*request.drafter)) {
    const FeatureHeader& header = request.file.header();
    if (header.hidden != config_.hidden) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "{}: features have {} columns a layer and the drafter expects {}; they are of "
              "another target",
              request.file.path(),
              header.hidden,
              config_.hidden
          )
      );
    }
    records_ = std::ssize(request.file.records());
    if (request.limit > 0) {
      records_ = std::min(records_, request.limit);
    }
    for (int64_t i = 0; i < records_; ++i) {
      longest_ = std::max<int64_t>(
          longest_, std::ssize(request.file.records()[static_cast<size_t>(i)].tokens)
      );
    }
  }

  FeatureReplay run(FunctionRef<void(const std::string&)> on_trial) {
    FeatureReplay result;
    result.records = records_;
    if (request_.other != nullptr) {
      result.trials.push_back(tried(
          {request_.other->path,
           request_.other,
           request_.embedding_scale,
           read_dflash_config(*request_.other).taps},
          on_trial
      ));
    }
    const Variant plain{"as it is", request_.drafter, request_.embedding_scale, config_.taps};
    on_trial(plain.name);
    const std::vector<AcceptanceStatistics> found = replay(plain);
    for (size_t i = 0; i < found.size(); ++i) {
      result.all.add(found[i]);
      (request_.file.records()[i].thinking ? result.thinking : result.speaking).add(found[i]);
    }
    if (request_.attribute) {
      for (const Variant& variant : variants()) {
        result.trials.push_back(tried(variant, on_trial));
      }
    }
    return result;
  }

 private:
  FeatureTrial tried(const Variant& variant, FunctionRef<void(const std::string&)> on_trial) {
    on_trial(variant.name);
    FeatureTrial trial{variant.name, {}};
    for (const AcceptanceStatistics& statistics : replay(variant)) {
      trial.found.add(statistics);
    }
    return trial;
  }

  /// Makes `drafter_` that of a variant; variants that differ in columns alone share one.
  void load(const Variant& variant) {
    if (drafter_ != nullptr && loaded_ == variant.drafter &&
        loaded_scale_ == variant.embedding_scale) {
      return;
    }
    drafter_.reset();  // first: two need twice the memory
    DrafterOptions options;
    options.embedding_scale = variant.embedding_scale;
    options.draft_head = request_.draft_head;
    options.kv_type = request_.kv_type;
    drafter_ = std::make_unique<DFlashDrafter>(
        load_drafter(variant.drafter, request_.ops, request_.vocabulary, std::move(options)),
        request_.vocabulary.final_softcap()
    );
    loaded_ = variant.drafter;
    loaded_scale_ = variant.embedding_scale;
  }

  /// By record.
  std::vector<AcceptanceStatistics> replay(const Variant& variant) {
    load(variant);
    ReplayVariant replayed;
    replayed.drafter = drafter_.get();
    RecordedReplayOptions rules;
    rules.stop_tokens.assign(request_.stop_tokens.begin(), request_.stop_tokens.end());
    rules.vocabulary = request_.vocabulary.shape().vocabulary;
    rules.stride = request_.stride;
    std::vector<AcceptanceStatistics> found;
    for (int64_t i = 0; i < records_; ++i) {
      found.push_back(
          replay_record(request_.file, i, replayed, variant.taps, request_.suppressed_tokens, rules)
      );
    }
    return found;
  }

  std::vector<Variant> variants() const {
    std::vector<Variant> list;
    add_taps(list);  // first: they run the drafter that is loaded
    add_scales(list);
    add_windows(list);
    return list;
  }

  void add_scales(std::vector<Variant>& list) const {
    const float present = embedding_factor(request_.embedding_scale, config_);
    const float root = embedding_factor({EmbeddingScale::Kind::kSqrtHidden}, config_);
    for (const float scale : {1.0F, root}) {
      if (std::fabs(scale - present) > 1e-3F * scale) {
        list.push_back(
            {fmt::format("embedding scale {:g}", scale),
             request_.drafter,
             {EmbeddingScale::Kind::kValue, scale},
             config_.taps}
        );
      }
    }
  }

  bool recorded(const std::vector<int>& taps) const {
    return std::all_of(taps.begin(), taps.end(), [&](int tap) {
      return request_.file.header().has_tap(tap);
    });
  }

  void add_taps(std::vector<Variant>& list) const {
    std::vector<int> reversed(config_.taps.rbegin(), config_.taps.rend());
    if (reversed != config_.taps) {
      list.push_back(
          {"taps in reverse order", request_.drafter, request_.embedding_scale, std::move(reversed)}
      );
    }
    for (const auto& [shift, name] :
         {std::pair(-1, "taps one layer lower"), std::pair(1, "taps one layer higher")}) {
      std::vector<int> shifted = config_.taps;
      for (int& tap : shifted) {
        tap += shift;
      }
      if (recorded(shifted)) {
        list.push_back({name, request_.drafter, request_.embedding_scale, std::move(shifted)});
      }
    }
  }

  void add_windows(std::vector<Variant>& list) const {
    const auto window = request_.drafter->metadata.find_integer(kWindowKey);
    if (!window || *window == 0) {
      return;
    }
    for (const auto& [size, name] :
         {std::pair(*window / 2, "a window half as wide"),
          std::pair(*window * 2, "a window twice as wide"),
          std::pair(kNoWindow, "no window")}) {
      const int64_t narrower = std::min(size, *window);
      if (narrower < longest_ && size >= config_.block) {  // else it changes nothing
        auto changed = std::make_shared<Checkpoint>(*request_.drafter);
        changed->metadata.set(kWindowKey, static_cast<uint32_t>(size));
        list.push_back({name, std::move(changed), request_.embedding_scale, config_.taps});
      }
    }
  }

  const FeatureReplayRequest& request_;
  DFlashConfig config_;
  int64_t records_ = 0;
  int64_t longest_ = 0;  // text, in tokens
  std::unique_ptr<DFlashDrafter> drafter_;
  std::shared_ptr<const Checkpoint> loaded_;  // what drafter_ was made of
  EmbeddingScale loaded_scale_;
};

}  // namespace

const FeatureTrial* FeatureReplay::clearly_better() const {
  const FeatureTrial* best = nullptr;
  double most = kClearly * all.mean_acceptance_length();
  for (const FeatureTrial& trial : trials) {
    if (trial.found.mean_acceptance_length() > most) {
      most = trial.found.mean_acceptance_length();
      best = &trial;
    }
  }
  return best;
}

const AcceptanceStatistics* FeatureReplay::clearly_worse_kind() const {
  if (std::min(thinking.steps, speaking.steps) < kStepsToCompare) {
    return nullptr;
  }
  const double with = thinking.mean_acceptance_length();
  const double without = speaking.mean_acceptance_length();
  if (std::max(with, without) <= kClearly * std::min(with, without)) {
    return nullptr;
  }
  return with < without ? &thinking : &speaking;
}

AcceptanceStatistics replay_record(
    const FeatureFile& file,
    int64_t i,
    const ReplayVariant& variant,
    std::span<const int> taps,
    std::span<const TokenId> suppressed_tokens,
    const RecordedReplayOptions& options
) {
  const FeatureRecord& record = file.records()[static_cast<size_t>(i)];
  const std::vector<float> features = file.features(i, taps);
  const int64_t width = std::ssize(taps) * file.header().hidden;
  RecordedText text;
  text.tokens = record.tokens;
  text.prompt_length = record.prompt_tokens;
  text.max_tokens = record.max_tokens;
  text.sampling = file.header().sampling;
  text.sampling.seed = record.seed;
  for (const TokenId token : suppressed_tokens) {
    text.sampling.logit_bias.push_back({token, kBanBias});
  }
  text.features = {features.data(), std::ssize(record.tokens) - 1, width, width};
  return replay_recorded(variant, text, options);
}

FeatureReplay replay_features(
    const FeatureReplayRequest& request, FunctionRef<void(const std::string&)> on_trial
) {
  return Replayer(request).run(on_trial);
}

}  // namespace octet
