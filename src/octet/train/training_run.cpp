#include "octet/train/training_run.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "octet/base/json_writer.h"
#include "octet/formats/json_value.h"

namespace octet::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void write_list(JsonWriter& json, std::string_view name, const std::vector<double>& list) {
  json.key(name).begin_array();
  for (const double value : list) {
    json.value(value);
  }
  json.end_array();
}

std::vector<double> read_list(const JsonArray* list) {
  std::vector<double> values;
  if (list != nullptr) {
    for (const JsonValue& value : *list) {
      values.push_back(value.number().value_or(0.0));
    }
  }
  return values;
}

/// Every digit of what later numbers are added to or held against; JsonWriter rounds to nine.
std::string exact(double value) {
  return fmt::format("{}", value);
}

double read_exact(const std::string* text) {
  return text == nullptr ? 0.0 : std::strtod(text->c_str(), nullptr);
}

/// Speed over the last steps, so that a slow start does not spoil the forecast.
class PaceMeter {
 public:
  Pace add(const StepReport& report, int64_t steps) {
    const double now = seconds_since(start_);
    const double seconds = now - last_;
    last_ = now;
    constexpr double kKept = 0.9;
    const bool first = mean_seconds_ == 0.0;
    mean_seconds_ = first ? seconds : kKept * mean_seconds_ + (1.0 - kKept) * seconds;
    mean_tokens_ =
        first ? report.sums.tokens : kKept * mean_tokens_ + (1.0 - kKept) * report.sums.tokens;
    const auto left = static_cast<double>(steps - report.step - 1);
    return {mean_tokens_ / std::max(mean_seconds_, 1e-9), left * mean_seconds_};
  }
  /// Time that belongs to no step.
  void skip() { last_ = seconds_since(start_); }

 private:
  Clock::time_point start_ = Clock::now();
  double last_ = 0.0;
  double mean_seconds_ = 0.0;
  double mean_tokens_ = 0.0;
};

}  // namespace

void TrainingRecord::add(const BatchSums& sums) {
  open_point.add(sums);
  if (++open_steps < steps_per_point) {
    return;
  }
  losses.push_back(open_point.mean_loss());
  std::vector<double> accuracy;
  for (size_t i = 0; i < open_point.judged.size(); ++i) {
    accuracy.push_back(open_point.accuracy(i));
  }
  accuracies.push_back(std::move(accuracy));
  open_point = {};
  open_steps = 0;
}

double TrainingRecord::best_validation() const {
  double best = 0.0;
  for (const Validation& validation : validations) {
    best = std::max(best, validation.value);
  }
  return best;
}

int64_t TrainingRecord::validations_without_gain() const {
  const auto best = std::max_element(
      validations.begin(),
      validations.end(),
      [](const Validation& a, const Validation& b) { return a.value < b.value; }
  );
  return best == validations.end() ? 0 : validations.end() - best - 1;
}

std::string record_text(const TrainingRecord& record) {
  JsonWriter json;
  json.begin_object().member("steps_per_point", record.steps_per_point);
  write_list(json, "losses", record.losses);
  json.key("accuracies").begin_array();
  for (const std::vector<double>& point : record.accuracies) {
    json.begin_array();
    for (const double value : point) {
      json.value(value);
    }
    json.end_array();
  }
  json.end_array().key("validations").begin_array();
  for (const Validation& validation : record.validations) {
    json.begin_object().member("step", validation.step).member("value", exact(validation.value));
    write_list(json, "by_position", validation.by_position);
    json.end_object();
  }
  json.end_array().member("open_steps", record.open_steps);
  const BatchSums& open = record.open_point;
  json.member("open_loss", exact(open.loss)).member("open_weight", exact(open.weight));
  json.member("open_tokens", open.tokens);
  write_list(json, "open_hits", open.hits);
  write_list(json, "open_judged", open.judged);
  json.end_object();
  return json.text();
}

TrainingRecord parse_record(const std::string& text) {
  const JsonValue json = parse_json(std::as_bytes(std::span(text)));
  TrainingRecord record;
  record.steps_per_point = std::max<int64_t>(json.find_integer("steps_per_point").value_or(1), 1);
  record.losses = read_list(json.find_array("losses"));
  if (const JsonArray* points = json.find_array("accuracies")) {
    for (const JsonValue& point : *points) {
      record.accuracies.push_back(read_list(point.array()));
    }
  }
  if (const JsonArray* validations = json.find_array("validations")) {
    for (const JsonValue& one : *validations) {
      record.validations.push_back(
          {one.find_integer("step").value_or(0),
           read_exact(one.find_string("value")),
           read_list(one.find_array("by_position"))}
      );
    }
  }
  record.open_steps = json.find_integer("open_steps").value_or(0);
  record.open_point.loss = read_exact(json.find_string("open_loss"));
  record.open_point.weight = read_exact(json.find_string("open_weight"));
  record.open_point.tokens = json.find_number("open_tokens").value_or(0.0);
  record.open_point.hits = read_list(json.find_array("open_hits"));
  record.open_point.judged = read_list(json.find_array("open_judged"));
  return record;
}

TrainingRecord resume(Trainer& trainer, const RunSettings& settings) {
  return parse_record(trainer.restore(settings.state_file, settings.description));
}

RunOutcome run_training(
    Trainer& trainer, TrainingRecord record, const RunSettings& settings, const RunHooks& hooks
) {
  const Clock::time_point start = Clock::now();
  RunOutcome outcome;
  outcome.record = std::move(record);
  TrainingRecord& seen = outcome.record;
  PaceMeter meter;
  const auto save = [&] {
    if (!settings.state_file.empty() && settings.writes_state) {
      trainer.save(settings.state_file, settings.description, record_text(seen));
    }
  };
  const auto exhausted = [&] {
    return settings.patience > 0 && seen.validations_without_gain() >= settings.patience;
  };
  while (!trainer.finished() && !exhausted()) {
    const StepReport report = trainer.step();
    seen.add(report.sums);
    hooks.on_step(report, meter.add(report, trainer.settings().steps));
    const int64_t done = trainer.next_step();
    const bool due = settings.validate_every > 0 && done % settings.validate_every == 0;
    if (hooks.validate && (due || trainer.finished())) {
      Validation validation = hooks.validate();
      validation.step = done;
      const bool best = validation.value > seen.best_validation();
      seen.validations.push_back(validation);
      hooks.on_validation(validation, best);
    }
    if (done % settings.save_every == 0 || trainer.finished() || exhausted()) {
      save();
    }
    meter.skip();
  }
  outcome.stopped_early = !trainer.finished();
  outcome.seconds = seconds_since(start);
  return outcome;
}

}  // namespace octet::train
