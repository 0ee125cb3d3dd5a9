#include "octet/speculation/drafters/no_drafter.h"

namespace octet {

std::unique_ptr<DraftState> NoDrafter::new_state(int64_t /*positions*/) const {
  return std::make_unique<DraftState>();
}

void NoDrafter::propose(std::span<DraftTask> /*tasks*/) {}

}  // namespace octet
