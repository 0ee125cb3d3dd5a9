#include "octet/engine/acceptance_replay.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/engine/replay_walk.h"
#include "octet/speculation/cycle.h"

namespace octet {
namespace {

struct ReplayState : DraftState {
  std::vector<std::unique_ptr<DraftState>> drafters;
  std::vector<ReplayWalk> walks;
};

ReplayState& state_of(DraftState& state) {
  return static_cast<ReplayState&>(state);
}

/// Feeds all variants' drafters and lets each draft where its walk needs it, but proposes nothing
/// itself.
class ReplayDrafter : public Drafter {
 public:
  ReplayDrafter(std::span<const ReplayVariant> variants, std::span<const TokenId> stop_tokens)
      : variants_(variants), stop_tokens_(stop_tokens) {
    for (const ReplayVariant& variant : variants) {
      if (std::find(drafters_.begin(), drafters_.end(), variant.drafter) == drafters_.end()) {
        drafters_.push_back(variant.drafter);
      }
      if (!std::ranges::equal(variant.drafter->taps(), drafters_.front()->taps())) {
        throw Error(
            ErrorKind::kMismatch,
            fmt::format(
                "the variants '{}' and '{}' read different target layers, expected drafters of one "
                "target",
                variants.front().name,
                variant.name
            )
        );
      }
    }
  }

  std::string_view name() const override { return "replay"; }
  std::span<const int> taps() const override { return drafters_.front()->taps(); }

  int max_drafts() const override {
    int most = 0;
    for (const Drafter* drafter : drafters_) {
      most = std::max(most, drafter->max_drafts());
    }
    return most;
  }

  int64_t feature_window() const override {
    int64_t most = 0;
    for (const Drafter* drafter : drafters_) {
      most = std::max(most, drafter->feature_window());
    }
    return most;
  }

  std::unique_ptr<DraftState> new_state(int64_t positions) const override {
    auto state = std::make_unique<ReplayState>();
    for (const Drafter* drafter : drafters_) {
      state->drafters.push_back(drafter->new_state(positions));
    }
    state->walks.resize(variants_.size());
    return state;
  }

  void observe(DraftState& state, int64_t position, ConstRows features) override {
    for (size_t i = 0; i < drafters_.size(); ++i) {
      drafters_[i]->observe(*state_of(state).drafters[i], position, features);
    }
  }

  void propose(std::span<DraftTask> tasks) override {
    for (const DraftTask& task : tasks) {
      ReplayState& state = state_of(*task.state);
      for (size_t v = 0; v < variants_.size(); ++v) {
        ReplayWalk& walk = state.walks[v];
        if (walk.anchor < 0 || walk.settle(task.tokens)) {
          walk.anchor = std::ssize(task.tokens) - 1;
          walk.drafts = drafts(variants_[v], task);
        }
      }
    }
  }

 private:
  std::vector<TokenId> drafts(const ReplayVariant& variant, const DraftTask& task) {
    const auto place = std::find(drafters_.begin(), drafters_.end(), variant.drafter);
    const ReplayState& state = state_of(*task.state);
    Proposal proposal;
    DraftTask own = task;
    own.state = state.drafters[static_cast<size_t>(place - drafters_.begin())].get();
    own.count = std::min({task.count, variant.draft_max, variant.drafter->max_drafts()});
    own.choices = &variant.choices;
    own.out = &proposal;
    if (own.count > 0) {
      variant.drafter->propose({&own, 1});
    }
    cut_after_end(proposal, stop_tokens_);
    return std::move(proposal.tokens);
  }

  std::span<const ReplayVariant> variants_;
  std::span<const TokenId> stop_tokens_;
  std::vector<Drafter*> drafters_;  // each once
};

/// Writes one reply and returns the whole text.
std::vector<TokenId> write_reply(
    TargetModel& target,
    ReplayDrafter& drafter,
    const ReplayRequest& request,
    size_t index,
    std::vector<AcceptanceStatistics>& statistics
) {
  const std::vector<TokenId>& prompt = request.prompts[index];
  const int64_t context =
      std::min(target.shape().context_length, std::ssize(prompt) + request.max_tokens);
  if (prompt.empty() || std::ssize(prompt) >= context) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "prompt {} of the replay has {} tokens, expected 1 to {}",
            index,
            prompt.size(),
            context - 1
        )
    );
  }
  SamplingParams sampling = request.sampling;
  sampling.seed += index;
  Sequence sequence;
  sequence.tokens = prompt;
  sequence.prompt_length = std::ssize(prompt);
  sequence.cache = target.new_cache(context, request.kv_type);
  sequence.draft_state = drafter.new_state(context);
  sequence.penalties = PenaltyWindow(sampling, prompt);
  sequence.sampler = std::make_shared<const Sampler>(sampling, target.shape().vocabulary);
  sequence.stop_tokens = request.stop_tokens;
  sequence.max_tokens = request.max_tokens;
  sequence.context_length = context;

  Cycle cycle(target, drafter);
  std::vector<Sequence*> batch = {&sequence};
  while (sequence.finish == FinishReason::kNone) {
    cycle.step(batch);
  }
  for (ReplayWalk& walk : state_of(*sequence.draft_state).walks) {
    walk.close(sequence.tokens);
    statistics.push_back(walk.statistics);
  }
  return std::move(sequence.tokens);
}

}  // namespace

ReplayResult replay_acceptance(
    TargetModel& target, std::span<const ReplayVariant> variants, const ReplayRequest& request
) {
  ReplayDrafter drafter(variants, request.stop_tokens);
  ReplayResult result;
  for (const ReplayVariant& variant : variants) {
    result.variants.push_back({variant.name, {}, {}});
  }
  int64_t written = 0;
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    std::vector<AcceptanceStatistics> statistics;
    const std::vector<TokenId> text = write_reply(target, drafter, request, i, statistics);
    for (size_t v = 0; v < statistics.size(); ++v) {
      result.variants[v].pooled.add(statistics[v]);
      result.variants[v].turns.push_back(statistics[v]);
    }
    const auto prompt_length = std::ssize(request.prompts[i]);
    result.replies.emplace_back(text.begin() + prompt_length, text.end());
    written += std::ssize(text) - prompt_length;
    if (request.enough_tokens > 0 && written >= request.enough_tokens) {
      break;
    }
  }
  return result;
}

}  // namespace octet
