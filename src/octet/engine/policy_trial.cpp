#include "octet/engine/policy_trial.h"

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/philox.h"
#include "octet/speculation/block_policy.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/drafters/wrapped_drafter.h"
#include "octet/speculation/learn_costs.h"
#include "octet/speculation/sequence.h"

namespace octet {
namespace {

/// Works and costs like the drafter inside it; its guesses become right with a given probability,
/// by a coin that is a function of the position. They say nothing of how sure they are.
class CoinDrafter : public WrappedDrafter {
 public:
  CoinDrafter(Drafter& inner, int64_t vocabulary, double acceptance)
      : WrappedDrafter(inner), vocabulary_(vocabulary), acceptance_(acceptance) {}

  /// The text that will be written, prompt included.
  void foresee(std::vector<TokenId> text) { text_ = std::move(text); }

  std::string_view name() const override { return "coin"; }

  void propose(std::span<DraftTask> tasks) override {
    WrappedDrafter::propose(tasks);
    if (text_.empty()) {
      return;  // costs are being learnt, and any guess will do
    }
    for (const DraftTask& task : tasks) {
      task.out->clear();
      for (int j = 0; j < task.count; ++j) {
        const size_t position = task.tokens.size() + static_cast<size_t>(j);
        if (position >= text_.size()) {
          break;
        }
        const bool right = coin(position) < acceptance_;
        task.out->tokens.push_back(
            right ? text_[position] : static_cast<TokenId>((text_[position] + 1) % vocabulary_)
        );
      }
    }
  }

 private:
  static double coin(size_t position) {
    return unit_interval(philox_words(0, static_cast<int64_t>(position), 0, 0)[0]);
  }

  int64_t vocabulary_;
  double acceptance_;
  std::vector<TokenId> text_;
};

double sum(const StepTimes& times) {
  return times.draft_ms + times.forward_ms + times.verify_ms + times.commit_ms;
}

/// One way to decode, with costs, policy, caches and figures that last from reply to reply.
class Arm {
 public:
  /// What all arms of a trial share. context: most positions of a text.
  struct Trial {
    TargetModel& target;
    Drafter& drafter;
    const PolicyTrialRequest& request;
    int64_t context;
  };

  Arm(const Trial& trial, std::string name, int draft_max, bool adaptive)
      : trial_(trial),
        draft_max_(draft_max),
        cycle_(trial.target, trial.drafter),
        policy_(cycle_.costs(), std::min(draft_max, trial.drafter.max_drafts())),
        adaptive_(adaptive) {
    figures_.name = std::move(name);
    sequence_.cache = trial.target.new_cache(trial.context, trial.request.kv_type);
    sequence_.draft_state = trial.drafter.new_state(trial.context);
    if (adaptive) {
      learn_costs(cycle_, trial.target, trial.drafter, trial.request.learn_costs_ms);
    }
  }

  void begin(size_t index) {
    const PolicyTrialRequest& request = trial_.request;
    const std::vector<TokenId>& prompt = request.prompts[index];
    SamplingParams sampling = request.sampling;
    sampling.seed += index;
    Sequence fresh;
    fresh.cache = std::move(sequence_.cache);
    fresh.draft_state = std::move(sequence_.draft_state);
    sequence_ = std::move(fresh);
    sequence_.cache->truncate(0);
    trial_.drafter.truncate(*sequence_.draft_state, 0);
    sequence_.tokens = prompt;
    sequence_.prompt_length = std::ssize(prompt);
    sequence_.penalties = PenaltyWindow(sampling, prompt);
    sequence_.sampler = std::make_shared<const Sampler>(sampling, trial_.target.shape().vocabulary);
    sequence_.draft_max = draft_max_;
    sequence_.feed_drafter = draft_max_ > 0;
    sequence_.policy = adaptive_ ? &policy_ : nullptr;
    sequence_.stop_tokens = request.stop_tokens;
    sequence_.max_tokens = request.max_tokens;
    sequence_.context_length = trial_.context;
    reply_tokens_ = 0;
    reply_ms_ = 0.0;
  }

  bool done() const { return sequence_.finish != FinishReason::kNone; }
  const std::vector<TokenId>& text() const { return sequence_.tokens; }
  int64_t written() const { return sequence_.reply_length(); }
  const PolicyArm& figures() const { return figures_; }
  int64_t kv_bytes() const { return sequence_.cache->bytes(); }
  int64_t draft_context_bytes() const { return sequence_.draft_state->bytes(); }

  /// Until the reply has `tokens` tokens, or ends.
  void write_until(int64_t tokens) {
    Sequence* const batch[] = {&sequence_};
    while (!done() && written() < tokens) {
      const StepReport report = cycle_.step(batch);
      const SequenceStep& step = report.sequences.front();
      figures_.acceptance.add(step);
      if (!step.prompt) {
        reply_tokens_ += step.published;
        reply_ms_ += sum(report.times);
      }
    }
  }

  void end_round() { round_ms_.push_back(reply_ms_); }

  void end() {
    const auto middle = round_ms_.begin() + std::ssize(round_ms_) / 2;
    std::nth_element(round_ms_.begin(), middle, round_ms_.end());
    figures_.tokens += reply_tokens_;
    figures_.ms += *middle;
    round_ms_.clear();
  }

 private:
  Trial trial_;
  int draft_max_;
  Cycle cycle_;
  BlockPolicy policy_;
  bool adaptive_;
  Sequence sequence_;
  PolicyArm figures_;
  int64_t reply_tokens_ = 0;
  double reply_ms_ = 0.0;
  std::vector<double> round_ms_;  // of the present reply
};

/// Lets all arms write the reply to one prompt, in turn. The order is another in every turn: what
/// the arm before left in the caches must favour none.
void write_reply(
    std::span<const std::unique_ptr<Arm>> arms,
    const PolicyTrialRequest& request,
    size_t index,
    std::mt19937& shuffling
) {
  std::vector<Arm*> order;
  for (const std::unique_ptr<Arm>& arm : arms) {
    arm->begin(index);
    order.push_back(arm.get());
  }
  for (int64_t goal = request.turn_tokens; goal < request.max_tokens + request.turn_tokens;
       goal += request.turn_tokens) {
    std::shuffle(order.begin(), order.end(), shuffling);
    for (Arm* arm : order) {
      arm->write_until(goal);
    }
  }
  for (const std::unique_ptr<Arm>& arm : arms) {
    OCTET_CHECK(arm->done() && arm->text() == arms.front()->text());
    arm->end_round();
  }
}

/// Positions that the longest reply's text may have. Throws for a prompt that leaves no room.
int64_t longest_text(const TargetModel& target, const PolicyTrialRequest& request) {
  int64_t longest = 0;
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    const auto length = std::ssize(request.prompts[i]);
    const int64_t context = std::min(target.shape().context_length, length + request.max_tokens);
    if (length == 0 || length >= context) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "prompt {} of the trial has {} tokens, expected 1 to {}", i, length, context - 1
          )
      );
    }
    longest = std::max(longest, context);
  }
  return longest;
}

}  // namespace

double PolicyArm::ms_per_token() const {
  return tokens > 0 ? ms / static_cast<double>(tokens) : 0.0;
}

const PolicyArm& PolicyTrialResult::best() const {
  const PolicyArm* found = &plain;
  for (const PolicyArm& arm : fixed) {
    found = arm.ms_per_token() < found->ms_per_token() ? &arm : found;
  }
  return *found;
}

double PolicyTrialResult::over_plain() const {
  return plain.ms > 0.0 ? adaptive.ms_per_token() / plain.ms_per_token() : 0.0;
}

double PolicyTrialResult::over_best() const {
  return plain.ms > 0.0 ? adaptive.ms_per_token() / best().ms_per_token() : 0.0;
}

PolicyTrialResult try_policy(
    TargetModel& target,
    Drafter& drafter,
    const PolicyTrialRequest& request,
    FunctionRef<void(int64_t)> on_reply
) {
  CoinDrafter coin(drafter, target.shape().vocabulary, request.acceptance.value_or(0.0));
  Drafter& used = request.acceptance ? static_cast<Drafter&>(coin) : drafter;
  const Arm::Trial trial = {target, used, request, longest_text(target, request)};
  std::vector<std::unique_ptr<Arm>> arms;
  arms.push_back(std::make_unique<Arm>(trial, "plain", 0, false));
  for (const int length : request.lengths) {
    arms.push_back(std::make_unique<Arm>(trial, fmt::format("{} drafts", length), length, false));
  }
  arms.push_back(std::make_unique<Arm>(trial, "adaptive", kMaxDrafts, true));
  PolicyTrialResult result;
  std::mt19937 shuffling;  // one for the whole trial: orders must not be alike from reply to reply
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    if (request.acceptance || i == 0) {  // the text, to be foreseen; and a warm machine for all
      Arm scout(trial, "scout", 0, false);
      scout.begin(i);
      scout.write_until(request.max_tokens);
      coin.foresee(scout.text());
    }
    for (int round = 0; round < request.rounds; ++round) {
      write_reply(arms, request, i, shuffling);
    }
    for (const std::unique_ptr<Arm>& arm : arms) {
      arm->end();
    }
    on_reply(static_cast<int64_t>(i) + 1);
  }
  for (const std::unique_ptr<Arm>& arm : arms) {
    result.kv_bytes += arm->kv_bytes();
    result.draft_context_bytes += arm->draft_context_bytes();
  }
  result.plain = arms.front()->figures();
  for (size_t i = 1; i + 1 < arms.size(); ++i) {
    result.fixed.push_back(arms[i]->figures());
  }
  result.adaptive = arms.back()->figures();
  return result;
}

}  // namespace octet
