// The drafter that never drafts: with it the verify cycle is plain decoding.
#pragma once

#include <memory>

#include "octet/speculation/drafter.h"

namespace octet {

class NoDrafter : public Drafter {
 public:
  std::string_view name() const override { return "none"; }
  int max_drafts() const override { return 0; }
  std::unique_ptr<DraftState> new_state(int64_t positions) const override;
  void propose(std::span<DraftTask> tasks) override;
};

}  // namespace octet
