// Drafts with a DFlash model: keeps each sequence's context K/V in step with the committed text and
// turns rows of draft logits into tokens. The model's block always runs in full; a shorter proposal
// is its first rows. Features wait raw, a few rows at most, until the next draft,
// so steps without drafts leave no hole. Where features were never observed the context is masked.
// Invariant at a draft: the context ends right before the anchor.
#pragma once

#include <memory>
#include <vector>

#include "octet/models/draft_model.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/proposal.h"

namespace octet {

class DFlashDrafter : public Drafter {
 public:
  /// softcap: of the target; the draft logits get it where probabilities matter, unless the
  /// drafter's file states one. 0: none.
  DFlashDrafter(std::unique_ptr<DraftModel> model, float softcap);

  std::string_view name() const override { return "dflash"; }
  int max_drafts() const override;
  std::span<const int> taps() const override;
  int64_t feature_window() const override;
  std::unique_ptr<DraftState> new_state(int64_t positions) const override;
  void propose(std::span<DraftTask> tasks) override;
  int64_t scratch_bytes() const override;
  void observe(DraftState& state, int64_t position, ConstRows features) override;
  void truncate(DraftState& state, int64_t length) override;
  bool can_truncate(const DraftState& state, int64_t length) const override;
  int64_t spare_positions(const DraftState& state) const override;
  void copy_prefix(DraftState& to, const DraftState& from, int64_t length) override;

  DraftModel& model() { return *model_; }

 private:
  std::unique_ptr<DraftModel> model_;
  float softcap_;
  std::vector<DraftRequest> requests_;
  std::vector<float> logits_;
};

}  // namespace octet
