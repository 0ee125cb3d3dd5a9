// A sequence that decodes on a simulated machine: costs and the fate of drafts are given, the block
// policy decides, time is added up and nothing is timed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "octet/speculation/block_policy.h"

namespace octet::test {

inline constexpr int kSimulatedDrafts = 7;

struct Machine {
  double plain_ms = 55.0;
  double row_ms = 4.0;  // what each further row adds
  double draft_ms = 16.0;
  double pause_ms = 0.0;  // more for a draft after a plain step
  double cold = 1.0;      // how much longer the first pass of a kind takes

  double forward_ms(int rows) const { return plain_ms + row_ms * (rows - 1); }
  double block_ms(int drafts) const {
    return forward_ms(drafts + 1) + (drafts > 0 ? draft_ms : 0.0);
  }
};

struct Outcome {
  int64_t tokens = 0;
  int64_t drafted = 0;
  int64_t verified_in_vain = 0;  // steps whose drafts were all wrong
  double ms = 0.0;
  double ms_per_token() const { return ms / static_cast<double>(tokens); }
};

class SimulatedDecoding {
 public:
  /// Measured times scatter by `noise` (relative).
  SimulatedDecoding(const Machine& machine, double noise, uint64_t seed)
      : machine_(machine), scatter_(1.0, noise), random_(seed), policy_(costs_, kSimulatedDrafts) {}

  /// What learn_costs() does before a first text.
  void learn_costs() {
    for (int round = 0; round < 3; ++round) {
      for (const int drafts : {kSimulatedDrafts, kSimulatedDrafts / 2, 0}) {
        costs_.observe_forward(drafts + 1, machine_.forward_ms(drafts + 1) * measured());
      }
      costs_.observe_look((machine_.draft_ms + machine_.pause_ms) * measured());
      costs_.observe_draft(machine_.draft_ms * measured());
    }
  }

  /// One step. right: so many of the drafts, from the first on, are what the text goes on with.
  /// confidence: by draft, or empty. room: no block is longer.
  void step(int right, std::span<const float> confidence, int room = kSimulatedDrafts) {
    const int wanted = policy_.next_drafts();
    ASSERT_GE(wanted, 0);
    ASSERT_LE(wanted, kSimulatedDrafts);
    const int asked = std::min(wanted, room);
    // The text is its positions; a wrong draft is none of them.
    const auto next = static_cast<TokenId>(outcome.tokens);
    std::vector<TokenId> drafts;
    for (int k = 0; k < asked; ++k) {
      drafts.push_back(k < right ? next + k : -1);
    }
    const int kept = asked > 0 ? policy_.keep(drafts, confidence) : 0;
    ASSERT_LE(kept, asked);
    const int accepted = std::min(right, kept);
    add_up(asked, kept, accepted);
    std::vector<TokenId> published(static_cast<size_t>(accepted) + 1);
    std::iota(published.begin(), published.end(), next);
    policy_.published(published);
    if (kept > 0) {
      policy_.observe(kept, accepted, std::min(accepted + 1, kept));
    }
  }

  void begin_reply() { policy_.abandon_look(); }
  void move_to(const Machine& machine) { machine_ = machine; }
  double random_unit() { return std::uniform_real_distribution<double>(0.0, 1.0)(random_); }

  Outcome outcome;

 private:
  double measured() { return std::max(0.2, scatter_(random_)); }

  void add_up(int asked, int kept, int accepted) {
    const double forward_ms = machine_.forward_ms(kept + 1);
    const double draft_ms = machine_.draft_ms + (drafted_before_ ? 0.0 : machine_.pause_ms);
    outcome.verified_in_vain += kept > 0 && accepted == 0 ? 1 : 0;
    outcome.tokens += accepted + 1;
    outcome.ms += forward_ms + (asked > 0 ? draft_ms : 0.0);
    outcome.drafted += kept;
    const bool cold = !costs_.knows_forward(kept + 1);
    costs_.observe_forward(kept + 1, forward_ms * measured() * (cold ? machine_.cold : 1.0));
    if (asked > 0 && drafted_before_) {
      costs_.observe_draft(draft_ms * measured());
    } else if (asked > 0) {
      costs_.observe_look(draft_ms * measured());
    }
    drafted_before_ = asked > 0;
  }

  Machine machine_;
  std::normal_distribution<double> scatter_;
  std::mt19937_64 random_;
  StepCosts costs_;
  BlockPolicy policy_;
  bool drafted_before_ = false;
};

}  // namespace octet::test
