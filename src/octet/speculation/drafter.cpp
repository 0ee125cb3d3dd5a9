#include "octet/speculation/drafter.h"

namespace octet {

// A drafter that works from text alone has nothing to do here.
void Drafter::observe(DraftState& /*state*/, int64_t /*position*/, ConstRows /*features*/) {}

void Drafter::truncate(DraftState& /*state*/, int64_t /*length*/) {}

}  // namespace octet
