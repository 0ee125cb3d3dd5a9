// A drafter that passes everything on to another one: the base of those that change or watch what
// it proposes.
#pragma once

#include <memory>
#include <span>

#include "octet/speculation/drafter.h"

namespace octet {

class WrappedDrafter : public Drafter {
 public:
  /// `inner` must outlive it.
  explicit WrappedDrafter(Drafter& inner) : inner_(inner) {}

  int max_drafts() const override { return inner_.max_drafts(); }
  std::span<const int> taps() const override { return inner_.taps(); }
  int64_t feature_window() const override { return inner_.feature_window(); }
  std::unique_ptr<DraftState> new_state(int64_t positions) const override {
    return inner_.new_state(positions);
  }
  void propose(std::span<DraftTask> tasks) override { inner_.propose(tasks); }
  int64_t scratch_bytes() const override { return inner_.scratch_bytes(); }
  void observe(DraftState& state, int64_t position, ConstRows features) override {
    inner_.observe(state, position, features);
  }
  void truncate(DraftState& state, int64_t length) override { inner_.truncate(state, length); }
  bool can_truncate(const DraftState& state, int64_t length) const override {
    return inner_.can_truncate(state, length);
  }
  int64_t spare_positions(const DraftState& state) const override {
    return inner_.spare_positions(state);
  }
  void copy_prefix(DraftState& to, const DraftState& from, int64_t length) override {
    inner_.copy_prefix(to, from, length);
  }

 private:
  Drafter& inner_;
};

}  // namespace octet
