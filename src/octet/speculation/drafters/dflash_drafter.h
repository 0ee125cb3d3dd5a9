// Drafts with a DFlash model: keeps each sequence's context K/V in step with the committed text and
// turns rows of draft logits into tokens. The model's block always runs in full; a shorter proposal
// is its first rows (dflash.md 3.6). Features are kept raw until the next draft, so steps without
// drafts leave no hole and cost nothing; of those only the last window is injected. Invariant at a
// draft: the context ends right before the anchor.
#pragma once

#include <memory>
#include <vector>

#include "octet/models/draft_model.h"
#include "octet/speculation/drafter.h"
#include "octet/speculation/proposal.h"

namespace octet {

struct DFlashOptions {
  DraftChoices choices;  // for temperature > 0
  float softcap = 0.0F;  // of the draft logits, where probabilities matter: the target's
};

class DFlashDrafter : public Drafter {
 public:
  DFlashDrafter(std::unique_ptr<DraftModel> model, DFlashOptions options);

  std::string_view name() const override { return "dflash"; }
  int max_drafts() const override;
  std::span<const int> taps() const override;
  int64_t feature_window() const override;
  std::unique_ptr<DraftState> new_state(int64_t positions) const override;
  void propose(std::span<DraftTask> tasks) override;
  void observe(DraftState& state, int64_t position, ConstRows features) override;
  void truncate(DraftState& state, int64_t length) override;

  DraftModel& model() { return *model_; }

 private:
  void pick(const DraftTask& task, Rows logits) const;

  std::unique_ptr<DraftModel> model_;
  DFlashOptions options_;
  std::vector<DraftRequest> requests_;
  std::vector<float> logits_;
};

}  // namespace octet
