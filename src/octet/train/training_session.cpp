#include "octet/train/training_session.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/formats/atomic_file.h"
#include "octet/quantize/output_place.h"
#include "octet/train/run_report.h"

namespace octet::train {
namespace {

constexpr int64_t kPoints = 400;  // of a curve, at most

int64_t points_apart(int64_t steps) {
  return std::max<int64_t>(1, (steps + kPoints - 1) / kPoints);
}

/// Files that are written at the end must have a folder at the beginning.
void require_folder(const std::string& file, const char* flag) {
  if (file.empty()) {
    return;
  }
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  if (!std::filesystem::is_directory(folder)) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{} {}: the folder {} is not there", flag, file, folder.string())
    );
  }
}

}  // namespace

std::string loop_description(const LoopOptions& options) {
  const TrainerSettings& t = options.trainer;
  return fmt::format(
      "seed {}, batch {}, steps {}, epochs {}, optimizer {}, rates {} {}, decay {}, schedule {} "
      "{}, "
      "clip {}, precision {}",
      options.seed,
      t.batch,
      t.steps,
      options.epochs,
      t.optimizer.kind == OptimizerKind::kMuon ? "muon" : "adamw",
      t.optimizer.rate,
      t.optimizer.matrix_rate,
      t.optimizer.weight_decay,
      t.schedule.warm_up,
      t.schedule.flat,
      t.clip,
      options.precision == Precision::kBF16 ? "bf16" : "f32"
  );
}

TrainingSession::TrainingSession(const LoopOptions& options)
    : options_(options),
      threads_(options.threads > 0 ? options.threads : ThreadPool::usable_cpus()),
      progress_(!options.quiet && options.place.rank == 0) {
  if (leads()) {
    require_folder(options.html_file, "--html");
    require_folder(options.state_file, "--state");
    prepare_output(
        {options.data_files.front()},
        options.output,
        0,
        options.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse
    );
  }
  at::set_num_threads(threads_);
  if (options.place.processes > 1) {
    group_ = std::make_unique<ProcessGroup>(options.place);
  }
}

TrainingTexts TrainingSession::read(
    const std::vector<std::string>& files, const TextRules& rules, const Tokenizer* tokenizer
) const {
  TrainingTexts texts;
  for (const std::string& file : files) {
    read_training_texts(file, rules, tokenizer, texts);
  }
  if (leads()) {
    std::fputs(skipped_lines_text(texts.skipped).c_str(), stderr);
  }
  return texts;
}

TrainerSettings TrainingSession::trainer_settings(int64_t texts) const {
  TrainerSettings settings = options_.trainer;
  if (options_.epochs > 0.0) {
    const double samples = options_.epochs * static_cast<double>(texts);
    settings.steps =
        std::max<int64_t>(1, std::llround(samples / static_cast<double>(settings.batch)));
  }
  return settings;
}

RunHooks TrainingSession::hooks(const Plan& plan, int64_t steps) {
  RunHooks hooks;
  hooks.validate = plan.validate;
  hooks.on_step = [this, steps](const StepReport& report, const Pace& pace) {
    progress_.show(progress_text(report, pace, steps));
  };
  hooks.on_validation = [this, &plan](const Validation& validation, bool best) {
    progress_.clear();
    if (leads() && !options_.quiet) {
      fmt::print(
          stderr,
          "step {}: {} {:.3f}{}\n",
          validation.step,
          plan.value_name,
          validation.value,
          best ? ", the best so far" : ""
      );
    }
  };
  return hooks;
}

int TrainingSession::run(TrainingTask& task, const Plan& plan) {
  const TrainerSettings settings = trainer_settings(plan.texts);
  Trainer trainer(task, settings, group_.get());
  RunSettings run;
  run.description = plan.description;
  run.state_file = options_.state_file;
  run.writes_state = leads();
  run.save_every = options_.save_every;
  run.patience = options_.patience;
  if (plan.validate) {
    run.validate_every = options_.validate_every > 0
                             ? options_.validate_every
                             : std::max<int64_t>(1, plan.texts / settings.batch);
  }
  TrainingRecord record;
  record.steps_per_point = points_apart(settings.steps);
  if (options_.resume) {
    record = resume(trainer, run);
  }
  const RunOutcome outcome =
      run_training(trainer, std::move(record), run, hooks(plan, settings.steps));
  progress_.clear();
  if (leads()) {
    finish(plan, outcome, task);
  }
  return 0;
}

void TrainingSession::finish(const Plan& plan, const RunOutcome& outcome, TrainingTask& task)
    const {
  plan.write(options_.output);
  const TrainingRecord& record = outcome.record;
  const double last_loss = record.losses.empty() ? 0.0 : record.losses.back();
  if (!options_.html_file.empty()) {
    ReportTexts texts;
    texts.title = plan.title;
    texts.value_name = plan.value_name;
    texts.facts = {
        {"time", clock_text(outcome.seconds)},
        {"last loss", fmt::format("{:.4f}", last_loss)},
        {"end", outcome.stopped_early ? "no gain any more" : "all steps"},
        {"settings and data", plan.description}};
    const std::string page = run_page(record, texts);
    AtomicFile file(options_.html_file);
    file.write(std::as_bytes(std::span(page)));
    file.finish();
  }
  if (!options_.quiet) {
    fmt::print(
        "{}: {}, {} parameters, {}, last loss {:.4f}\n",
        options_.output,
        plan.title,
        task.parameters().count(),
        clock_text(outcome.seconds),
        last_loss
    );
  }
}

}  // namespace octet::train
