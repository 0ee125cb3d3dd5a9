#include "octet/speculation/learn_costs.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "octet/sampling/sampler.h"
#include "octet/speculation/sequence.h"

namespace octet {
namespace {

// The first pass of a kind is often a cold one; the median of three is not.
constexpr int kRounds = 3;
constexpr int kKinds = 3;
// Of weights, on a small board: 10 GB/s.
constexpr double kBytesPerMs = 1e7;

// So many positions of context a draft takes in after a pause, about.
constexpr int64_t kPromptRows = 32;

Sequence throwaway_text(TargetModel& target, Drafter& drafter, int64_t positions) {
  Sequence sequence;
  const SamplingParams greedy;
  sequence.tokens.assign(static_cast<size_t>(std::min(kPromptRows, positions / 2)), 0);
  sequence.prompt_length = sequence.length();
  sequence.cache = target.new_cache(positions, KvType::kBF16);
  sequence.draft_state = drafter.new_state(positions);
  sequence.penalties = PenaltyWindow(greedy, sequence.tokens);
  sequence.sampler = std::make_shared<const Sampler>(greedy, target.shape().vocabulary);
  sequence.max_tokens = positions;
  sequence.context_length = positions;
  return sequence;
}

}  // namespace

void learn_costs(Cycle& cycle, TargetModel& target, Drafter& drafter, double budget_ms) {
  const int most = std::min(drafter.max_drafts(), kMaxDrafts);
  const double step_ms = static_cast<double>(target.memory().weights_bytes) / kBytesPerMs;
  if (most == 0 || budget_ms <= 0.0 || kRounds * kKinds * step_ms > budget_ms) {
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto spent_ms = [start] {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  const int64_t positions =
      std::min(target.shape().context_length, kPromptRows + int64_t{kRounds} * kKinds * (most + 1));
  Sequence sequence = throwaway_text(target, drafter, positions);
  BlockPolicy policy(cycle.costs(), most);  // asks drafts how sure they are, as replies do
  sequence.policy = &policy;
  Sequence* const batch[] = {&sequence};
  while (sequence.unprocessed() > 1) {
    cycle.step(batch);
  }
  for (int round = 0; round < kRounds; ++round) {
    // A draft after a plain step, one after another draft, and a plain step.
    for (const int drafts : {most, most / 2, 0}) {
      if (sequence.finish != FinishReason::kNone || spent_ms() > budget_ms) {
        return;
      }
      sequence.planned_drafts = drafts;
      cycle.step(batch);
    }
  }
}

}  // namespace octet
