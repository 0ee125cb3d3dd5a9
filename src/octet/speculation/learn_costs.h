// Measures what steps cost before the first text begins, so that no reply pays for finding out
// whether drafting is worth it.
#pragma once

#include "octet/models/target_model.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/drafter.h"

namespace octet {

/// Takes a few steps of every kind with `cycle`, which is one of the two models: plain ones, full
/// and half blocks, in a text of their own that is forgotten. Does nothing where that would take
/// longer than `budget_ms`, by the target's size on a slow machine, and stops when it has; what is
/// missing is learnt from use.
void learn_costs(Cycle& cycle, TargetModel& target, Drafter& drafter, double budget_ms);

}  // namespace octet
