// The training loop's one step and its state, for any model: the task gives the gradients of a
// summed loss over its share of a batch; here they are added over all processes, divided by the
// weight of the whole batch, clipped and applied. Not for when to stop or what to print
// (training_run.h). Invariants: a step is a function of the weights, the moments and the step's
// number, so a resumed run is the uninterrupted one to the bit; and because only sums cross process
// borders, two processes with half a batch each follow one with all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "octet/train/optimizer.h"
#include "octet/train/parameters.h"
#include "octet/train/process_group.h"
#include "octet/train/state_file.h"

namespace octet::train {

/// Sums over the predictions of a batch; they add up over parts and processes.
struct BatchSums {
  double loss = 0.0;           // weighted
  double weight = 0.0;         // what it is divided by
  double tokens = 0.0;         // of the texts that were read
  std::vector<double> hits;    // by position in the block: the likeliest token is the right one
  std::vector<double> judged;  // by position: predictions

  double mean_loss() const { return weight > 0.0 ? loss / weight : 0.0; }
  double accuracy(size_t position) const;
  void add(const BatchSums& other);
};

/// Which part of a batch this process has: samples [step * batch + first, ... + count), counted
/// over the whole run.
struct BatchShare {
  int64_t first_sample = 0;
  int64_t count = 0;
};

class TrainingTask {
 public:
  virtual ~TrainingTask() = default;
  virtual Parameters& parameters() = 0;
  virtual ParameterRule rule(const Parameter& parameter) const = 0;
  /// Adds the gradients of the share's summed loss to the parameters' and returns its sums.
  virtual BatchSums accumulate(const BatchShare& share) = 0;
};

struct TrainerSettings {
  OptimizerSettings optimizer;
  Schedule schedule;
  int64_t steps = 1000;
  int64_t batch = 4;  // samples a step, of all processes together
  double clip = 1.0;  // of the gradients' norm; 0: none
};

struct StepReport {
  int64_t step = 0;  // counted from 0
  BatchSums sums;    // of all processes
  double gradient_norm = 0.0;
  double rate_factor = 0.0;
};

class Trainer {
 public:
  /// `group` may be null: one process. Throws Error(kInvalidArgument) when the batch is no multiple
  /// of the number of processes.
  Trainer(TrainingTask& task, TrainerSettings settings, ProcessGroup* group);

  const TrainerSettings& settings() const { return settings_; }
  int64_t next_step() const { return next_step_; }
  bool finished() const { return next_step_ >= settings_.steps; }
  /// Throws Error(kMismatch), with weights and moments as they were, when the gradients have no
  /// finite norm.
  StepReport step();

  /// Weights, moments and the step's number as one safetensors file that appears complete or not at
  /// all, with `notes` of the caller's. `run` describes settings and data; restoring under another
  /// description is refused with Error(kMismatch).
  void save(const std::string& path, const std::string& run, const std::string& notes) const;
  /// Returns the notes.
  std::string restore(const std::string& path, const std::string& run);

  /// Makes all processes of the group begin alike: weights, moments, the step's number and `notes`
  /// become those of process 0, whose notes are returned. Throws Error(kMismatch), in every process
  /// at once, unless all give the same `run`. Alone it returns `notes`.
  std::string begin_together(const std::string& run, const std::string& notes);

 private:
  BatchShare share() const;
  void require_one_run(const std::string& run) const;
  /// Of every parameter: value and moments, the names of a state file before its own.
  std::vector<NamedTensor> state_tensors() const;
  std::vector<Tensor> take_gradients();

  TrainingTask& task_;
  TrainerSettings settings_;
  ProcessGroup* group_;
  Optimizer optimizer_;
  int64_t next_step_ = 0;
};

}  // namespace octet::train
