// What every command of octet-train does around its model: threads, texts read and reported, other
// processes met, steps counted from epochs, state, progress and the page at the end. Not for
// models. Invariant: nothing is written before all input was found good.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octet/cli/terminal.h"
#include "octet/train/options.h"
#include "octet/train/process_group.h"
#include "octet/train/recorded_texts.h"
#include "octet/train/training_run.h"
#include "octet/train/training_text.h"

namespace octet::train {

/// The settings of the loop that the weights after a step depend on.
std::string loop_description(const LoopOptions& options);

/// A number that tells shapes of models apart: of all metadata of the frame but the tokenizer's and
/// what is said about the file, and of the weights that do not train.
uint64_t shape_digest(const ModelFrame& frame);

/// "given weights 0123456789abcdef" of the checkpoint to begin with, or `otherwise` for none.
std::string beginning_description(const Checkpoint* initial, const std::string& otherwise);

class TrainingSession {
 public:
  /// Checks the output, which must hold nothing that is read (`inputs` beside the options' own
  /// files), sets libtorch's threads and meets the other processes.
  TrainingSession(const LoopOptions& options, const std::vector<std::string>& inputs);

  bool leads() const { return options_.place.rank == 0; }
  int threads() const { return threads_; }

  /// Texts of --data or --validation; bad lines are told on standard error.
  TrainingTexts read(
      const std::vector<std::string>& files, const TextRules& rules, const Tokenizer* tokenizer
  ) const;
  /// The same of files of recorded features.
  RecordedTexts read_recorded(
      const std::vector<std::string>& files, const Checkpoint& target, const TextRules& rules
  ) const;

  struct Plan {
    std::string title;                                   // of the page and the last line
    std::string description;                             // of everything that a state depends on
    std::string value_name;                              // of validations
    int64_t texts = 0;                                   // of an epoch
    std::function<Validation()> validate;                // called in process 0 alone
    std::function<void(const std::string& path)> write;  // the trained model
  };
  /// Trains to the end and writes the model and the page. Returns the exit code.
  int run(TrainingTask& task, const Plan& plan);

 private:
  TrainerSettings trainer_settings(int64_t texts) const;
  void check_places(const std::vector<std::string>& inputs) const;
  TrainingRecord begin(Trainer& trainer, const RunSettings& run);
  Validation validated(const Plan& plan);
  RunHooks hooks(const Plan& plan, int64_t steps);
  void finish(const Plan& plan, const RunOutcome& outcome, TrainingTask& task) const;

  const LoopOptions& options_;
  int threads_ = 1;
  std::unique_ptr<ProcessGroup> group_;
  cli::Progress progress_;
};

}  // namespace octet::train
