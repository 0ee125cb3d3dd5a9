#include "octet/speculation/drafter.h"

#include <limits>

namespace octet {

// A drafter that works from text alone has nothing to do here.
void Drafter::observe(DraftState& /*state*/, int64_t /*position*/, ConstRows /*features*/) {}

void Drafter::truncate(DraftState& /*state*/, int64_t /*length*/) {}

bool Drafter::can_truncate(const DraftState& /*state*/, int64_t /*length*/) const {
  return true;
}

int64_t Drafter::spare_positions(const DraftState& /*state*/) const {
  return std::numeric_limits<int64_t>::max();
}

void Drafter::copy_prefix(DraftState& /*to*/, const DraftState& /*from*/, int64_t /*length*/) {}

}  // namespace octet
