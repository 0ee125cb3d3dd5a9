// What steps cost, learnt from use: the target's passes by their number of rows, and drafts. Shared
// by all sequences of an engine; the block policy prices drafting with it.
#pragma once

#include <array>
#include <cstdint>

#include "octet/speculation/proposal.h"

namespace octet {

/// Running costs of steps: the target by number of rows, and a draft with the injection before it.
/// Medians of the last few observations, because a shared machine has outliers; observations from
/// before a long pause are dropped, because it drifts.
class StepCosts {
 public:
  static constexpr int kMaxRows = kMaxDrafts + 1;
  /// Observations from before so many passes are of another time.
  static constexpr int64_t kStalePasses = 200;

  void observe_forward(int rows, double ms);
  /// Of a draft that follows another: the first one after a pause has more features to take in.
  void observe_draft(double ms);
  /// Of a draft after plain steps.
  void observe_look(double ms);

  bool knows_forward(int rows) const;
  /// Whether it was seen more than once since the last long pause: the first pass of a kind is
  /// often a cold one.
  bool sure_of_forward(int rows) const;
  bool knows_draft() const { return draft_.count > 0; }
  /// Milliseconds of a pass over `rows` rows; between and beyond what was seen, interpolated
  /// linearly in rows. 0 when nothing was seen.
  double forward_ms(int rows) const;
  double draft_ms() const { return draft_.median; }
  /// Of a step that drafts and passes `rows` rows through the target.
  double block_ms(int rows) const { return draft_ms() + forward_ms(rows); }
  /// Of a look; before one was seen, of a draft.
  double look_ms() const { return look_.count > 0 ? look_.median : draft_.median; }
  /// Passes seen since one over `rows` rows was.
  int64_t forward_age(int rows) const;

 private:
  struct Samples {
    std::array<double, 15> recent{};
    int count = 0;  // since the last long pause
    int64_t last_pass = 0;
    double median = 0.0;
    void add(double ms, int64_t pass);
  };
  int64_t passes_ = 0;
  std::array<Samples, kMaxRows + 1> forward_;  // by rows; [0] unused
  Samples draft_;
  Samples look_;
};

}  // namespace octet
