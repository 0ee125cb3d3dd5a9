#include "octet/train/training_session.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/evaluate/digest.h"
#include "octet/formats/atomic_file.h"
#include "octet/quantize/output_place.h"
#include "octet/train/run_report.h"

namespace octet::train {
namespace {

constexpr int64_t kPoints = 400;               // of a curve, at most
constexpr std::chrono::minutes kLineEvery(1);  // of progress in a log

int64_t points_apart(int64_t steps) {
  return std::max<int64_t>(1, (steps + kPoints - 1) / kPoints);
}

template <typename T>
void add_value(Digest& digest, const T& value) {
  if constexpr (std::is_same_v<T, MetadataArray>) {
    std::visit(
        [&](const auto& list) {
          for (const auto& one : list) {
            add_value(digest, std::decay_t<decltype(one)>(one));
          }
        },
        value
    );
  } else if constexpr (std::is_arithmetic_v<T>) {
    digest.add_text(fmt::format("{}", value));
  } else {
    digest.add_text(value);
  }
}

/// A file beside the model, which may be there already.
void prepare_file(
    const std::vector<std::string>& inputs, const std::string& file, const char* flag
) {
  if (file.empty()) {
    return;
  }
  try {
    prepare_output(inputs, file, 0, ExistingOutput::kReplace);
  } catch (Error& error) {
    error.add_context(flag);
    throw;
  }
}

}  // namespace

std::string loop_description(const LoopOptions& options) {
  const TrainerSettings& t = options.trainer;
  return fmt::format(
      "seed {}, batch {}, steps {}, epochs {}, optimizer {}, rates {} {}, decay {}, "
      "schedule {} {}, clip {}, precision {}",
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

uint64_t shape_digest(const ModelFrame& frame) {
  Digest digest;
  for (const auto& [key, value] : frame.portable.metadata.entries()) {
    if (!key.starts_with("tokenizer.") && !key.starts_with("general.")) {
      digest.add_text(key);
      std::visit([&](const auto& one) { add_value(digest, one); }, value);
    }
  }
  for (const LogicalTensor& tensor : frame.fixed) {
    digest.add_text(tensor.name);
    for (const std::byte byte : tensor.data) {
      digest.add(static_cast<uint64_t>(byte));
    }
  }
  return digest.value();
}

std::string beginning_description(const Checkpoint* initial, const std::string& otherwise) {
  return initial == nullptr ? otherwise
                            : fmt::format("given weights {:016x}", checkpoint_digest(*initial));
}

TrainingSession::TrainingSession(const LoopOptions& options, const std::vector<std::string>& inputs)
    : options_(options),
      threads_(options.threads > 0 ? options.threads : ThreadPool::usable_cpus()),
      progress_(!options.quiet && options.place.rank == 0, kLineEvery) {
  if (leads()) {
    check_places(inputs);
  }
  at::set_num_threads(threads_);
  if (options.place.processes > 1) {
    group_ = std::make_unique<ProcessGroup>(options.place);
  }
}

void TrainingSession::check_places(const std::vector<std::string>& inputs) const {
  std::vector<std::string> kept = inputs;
  kept.insert(kept.end(), options_.data_files.begin(), options_.data_files.end());
  kept.insert(kept.end(), options_.validation_files.begin(), options_.validation_files.end());
  refuse_one_place_twice(
      {options_.output, options_.state_file, options_.html_file}, "two of -o, --state and --html"
  );
  prepare_file(kept, options_.html_file, "--html");
  prepare_file(kept, options_.state_file, "--state");
  if (!options_.resume && !options_.force && !options_.state_file.empty() &&
      std::filesystem::exists(options_.state_file)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--state {}: holds the state of a run; add --resume to go on from it, or --force to "
            "begin anew and replace it",
            options_.state_file
        )
    );
  }
  kept.insert(kept.end(), {options_.state_file, options_.html_file});
  prepare_output(
      kept,
      options_.output,
      0,
      options_.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse,
      OutputKind::kFolder
  );
}

TrainingTexts TrainingSession::read(
    const std::vector<std::string>& files, const TextRules& rules, const Tokenizer* tokenizer
) const {
  TrainingTexts texts;
  for (const std::string& file : files) {
    read_training_texts(file, rules, tokenizer, texts);
  }
  if (leads()) {
    std::vector<std::string> skipped;
    for (const SkippedLine& line : texts.skipped) {
      skipped.push_back(fmt::format("{}, line {}: {}", line.path, line.line, line.why));
    }
    std::fputs(skipped_text(skipped).c_str(), stderr);
  }
  return texts;
}

RecordedTexts TrainingSession::read_recorded(
    const std::vector<std::string>& files, const Checkpoint& target, const TextRules& rules
) const {
  RecordedTexts texts = read_recorded_texts(files, target, rules);
  if (leads()) {
    std::fputs(skipped_text(texts.skipped).c_str(), stderr);
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

/// One process validates, and its value ends or does not end the loop of all: another machine's
/// floating point could say otherwise.
Validation TrainingSession::validated(const Plan& plan) {
  Validation validation;
  if (leads()) {
    validation = plan.validate();
  }
  if (group_) {
    Tensor value = at::full({1}, validation.value, at::kDouble);
    group_->copy_from_first({&value, 1});
    validation.value = value.item<double>();
  }
  return validation;
}

/// Process 0 reads the state, the others get it from there.
TrainingRecord TrainingSession::begin(Trainer& trainer, const RunSettings& run) {
  TrainingRecord record;
  record.steps_per_point = points_apart(trainer.settings().steps);
  if (options_.resume && leads()) {
    record = resume(trainer, run);
  }
  // What a process does at a step must be the same in all: each waits for the others there.
  const std::string together = fmt::format(
      "{}, resume {}, validate every {}, patience {}",
      run.description,
      options_.resume,
      run.validate_every,
      run.patience
  );
  return parse_record(trainer.begin_together(together, record_text(record)));
}

RunHooks TrainingSession::hooks(const Plan& plan, int64_t steps) {
  RunHooks hooks;
  if (plan.validate) {
    hooks.validate = [this, &plan] { return validated(plan); };
  }
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
  TrainingRecord record = begin(trainer, run);
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
