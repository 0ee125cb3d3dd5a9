// What every command of octet-train does around its model: threads, texts read and reported, other
// processes met, steps counted from epochs, state, progress and the page at the end. Not for
// models. Invariant: nothing is written before all input was found good.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "octet/cli/terminal.h"
#include "octet/train/options.h"
#include "octet/train/process_group.h"
#include "octet/train/training_run.h"
#include "octet/train/training_text.h"

namespace octet::train {

/// The settings of the loop that the weights after a step depend on.
std::string loop_description(const LoopOptions& options);

class TrainingSession {
 public:
  /// Checks the output, sets libtorch's threads and meets the other processes.
  explicit TrainingSession(const LoopOptions& options);

  bool leads() const { return options_.place.rank == 0; }
  int threads() const { return threads_; }

  /// Texts of --data or --validation; bad lines are told on standard error.
  TrainingTexts read(
      const std::vector<std::string>& files, const TextRules& rules, const Tokenizer* tokenizer
  ) const;

  struct Plan {
    std::string title;        // of the page and the last line
    std::string description;  // of everything that a state depends on
    std::string value_name;   // of validations
    int64_t texts = 0;        // of an epoch
    std::function<Validation()> validate;
    std::function<void(const std::string& path)> write;  // the trained model
  };
  /// Trains to the end and writes the model and the page. Returns the exit code.
  int run(TrainingTask& task, const Plan& plan);

 private:
  TrainerSettings trainer_settings(int64_t texts) const;
  RunHooks hooks(const Plan& plan, int64_t steps);
  void finish(const Plan& plan, const RunOutcome& outcome, TrainingTask& task) const;

  const LoopOptions& options_;
  int threads_ = 1;
  std::unique_ptr<ProcessGroup> group_;
  cli::Progress progress_;
};

}  // namespace octet::train
