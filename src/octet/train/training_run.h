// A whole training run around Trainer: steps to the end, a saved state now and then, a validation
// now and then, an early end when it no longer gets better, and the record that reports are made
// of. Knows no model and prints nothing. Invariant: the record is part of the saved state, so a
// resumed run stops where the uninterrupted one would and reports the same curves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "octet/train/trainer.h"

namespace octet::train {

struct Validation {
  int64_t step = 0;                 // after so many steps
  double value = 0.0;               // greater is better
  std::vector<double> by_position;  // shares, where the task has positions
};

/// What a run saw. A point is the mean of `steps_per_point` steps.
struct TrainingRecord {
  int64_t steps_per_point = 1;
  std::vector<double> losses;                   // by point
  std::vector<std::vector<double>> accuracies;  // by point, by position
  std::vector<Validation> validations;
  BatchSums open_point;  // steps since the last point
  int64_t open_steps = 0;

  void add(const BatchSums& sums);
  double best_validation() const;
  /// Validations since the best one.
  int64_t validations_without_gain() const;
};

std::string record_text(const TrainingRecord& record);
/// Reads what record_text() wrote; what is missing stays empty. Throws Error(kMalformed) for text
/// that is no JSON or has values of other types.
TrainingRecord parse_record(const std::string& text);

struct RunSettings {
  std::string description;     // of settings and data: a state of another is refused
  std::string state_file;      // "": none is saved
  bool writes_state = true;    // one process of several does
  int64_t save_every = 200;    // steps
  int64_t validate_every = 0;  // steps; 0: never
  int64_t patience = 0;        // validations without gain that end the run; 0: none do
};

struct Pace {
  double tokens_per_second = 0.0;
  double seconds_left = 0.0;
};

struct RunHooks {
  std::function<Validation()> validate;  // may be empty; has the same value in every process
  std::function<void(const StepReport&, const Pace&)> on_step;
  std::function<void(const Validation&, bool best)> on_validation;
};

struct RunOutcome {
  TrainingRecord record;
  bool stopped_early = false;
  double seconds = 0.0;
};

/// Restores `settings.state_file` into the trainer and returns its record.
TrainingRecord resume(Trainer& trainer, const RunSettings& settings);

RunOutcome run_training(
    Trainer& trainer, TrainingRecord record, const RunSettings& settings, const RunHooks& hooks
);

}  // namespace octet::train
