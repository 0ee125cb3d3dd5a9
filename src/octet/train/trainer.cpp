#include "octet/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/evaluate/digest.h"

namespace octet::train {
namespace {

std::vector<double> summed(std::vector<double> a, const std::vector<double>& b) {
  a.resize(std::max(a.size(), b.size()));
  for (size_t i = 0; i < b.size(); ++i) {
    a[i] += b[i];
  }
  return a;
}

/// Sums as one float64 tensor for the trip between processes, and back.
Tensor packed(const BatchSums& sums) {
  std::vector<double> numbers = {sums.loss, sums.weight, sums.tokens};
  numbers.insert(numbers.end(), sums.hits.begin(), sums.hits.end());
  numbers.insert(numbers.end(), sums.judged.begin(), sums.judged.end());
  return at::tensor(numbers, at::kDouble);
}

void unpack(const Tensor& numbers, BatchSums& sums) {
  const auto* from = numbers.data_ptr<double>();
  sums.loss = *from++;
  sums.weight = *from++;
  sums.tokens = *from++;
  for (std::vector<double>* list : {&sums.hits, &sums.judged}) {
    for (double& number : *list) {
      number = *from++;
    }
  }
}

/// A step with such gradients would make every weight worthless, and the saved state after it.
void require_finite(const StepReport& report) {
  if (!std::isfinite(report.gradient_norm)) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "step {} has gradients without a finite norm (mean loss {:.3g}), so the run ends "
            "before they spoil the weights; begin anew with smaller --rate and --matrix-rate, a "
            "longer "
            "--warm-up or --precision f32",
            report.step + 1,
            report.sums.mean_loss()
        )
    );
  }
}

}  // namespace

double BatchSums::accuracy(size_t position) const {
  return judged[position] > 0.0 ? hits[position] / judged[position] : 0.0;
}

void BatchSums::add(const BatchSums& other) {
  loss += other.loss;
  weight += other.weight;
  tokens += other.tokens;
  hits = summed(std::move(hits), other.hits);
  judged = summed(std::move(judged), other.judged);
}

Trainer::Trainer(TrainingTask& task, TrainerSettings settings, ProcessGroup* group)
    : task_(task),
      settings_(settings),
      group_(group),
      optimizer_(task.parameters(), settings.optimizer, [&task](const Parameter& parameter) {
        return task.rule(parameter);
      }) {
  const int64_t processes = group_ == nullptr ? 1 : group_->processes();
  if (settings_.batch < processes || settings_.batch % processes != 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "a batch of {} cannot be shared by {} processes, expected a multiple of them",
            settings_.batch,
            processes
        )
    );
  }
}

BatchShare Trainer::share() const {
  const int64_t processes = group_ == nullptr ? 1 : group_->processes();
  const int64_t rank = group_ == nullptr ? 0 : group_->rank();
  const int64_t count = settings_.batch / processes;
  return {next_step_ * settings_.batch + rank * count, count};
}

/// The accumulated gradients, zeros where there are none; the parameters are left without.
std::vector<Tensor> Trainer::take_gradients() {
  std::vector<Tensor> gradients;
  for (Parameter& parameter : task_.parameters().all()) {
    Tensor& gradient = parameter.value.mutable_grad();
    gradients.push_back(
        gradient.defined() ? gradient.contiguous() : at::zeros_like(parameter.value.detach())
    );
    gradient = Tensor();
  }
  return gradients;
}

StepReport Trainer::step() {
  OCTET_CHECK(!finished());
  StepReport report;
  report.step = next_step_;
  report.sums = task_.accumulate(share());
  std::vector<Tensor> gradients = take_gradients();
  if (group_ != nullptr) {
    group_->sum(gradients);
    Tensor sums = packed(report.sums);
    group_->sum({&sums, 1});
    unpack(sums, report.sums);
  }
  if (report.sums.weight > 0.0) {
    for (Tensor& gradient : gradients) {
      gradient.div_(report.sums.weight);
    }
    report.gradient_norm = clip_gradients(gradients, settings_.clip);
    require_finite(report);
    report.rate_factor = settings_.schedule.factor(next_step_, settings_.steps);
    optimizer_.step(task_.parameters(), gradients, next_step_, report.rate_factor);
  }
  ++next_step_;
  return report;
}

std::vector<NamedTensor> Trainer::state_tensors() const {
  std::vector<NamedTensor> tensors;
  const auto parameters = task_.parameters().all();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Optimizer::Moments& moments = optimizer_.moments()[i];
    tensors.push_back({"weight/" + parameters[i].name, parameters[i].value.detach()});
    tensors.push_back({"first/" + parameters[i].name, moments.first});
    if (moments.second.defined()) {
      tensors.push_back({"second/" + parameters[i].name, moments.second});
    }
  }
  return tensors;
}

void Trainer::save(const std::string& path, const std::string& run, const std::string& notes)
    const {
  write_state_file(path, state_tensors(), {run, notes, next_step_});
}

std::string Trainer::restore(const std::string& path, const std::string& run) {
  const StateFile file = read_state_file(path);
  if (file.facts.run != run) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: was saved by a run with other settings or data ({}), this one has {}; resume with "
            "the same flags, or begin anew without --resume",
            path,
            file.facts.run,
            run
        )
    );
  }
  for (const NamedTensor& tensor : state_tensors()) {
    file.copy_to(tensor.name, tensor.value);
  }
  next_step_ = file.facts.next_step;
  return file.facts.notes;
}

void Trainer::require_one_run(const std::string& run) const {
  Digest digest;
  digest.add_text(run);
  const auto own = static_cast<int64_t>(digest.value());
  Tensor first = at::full({1}, own, at::kLong);
  group_->copy_from_first({&first, 1});
  Tensor others = at::full({1}, int64_t{first.item<int64_t>() != own}, at::kLong);
  group_->sum({&others, 1});
  if (others.item<int64_t>() > 0) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{} of {} processes would train something else than process 0 does; start all of them "
            "with the same flags, models and texts (process {} has {})",
            others.item<int64_t>(),
            group_->processes(),
            group_->rank(),
            run
        )
    );
  }
}

std::string Trainer::begin_together(const std::string& run, const std::string& notes) {
  if (group_ == nullptr) {
    return notes;
  }
  require_one_run(run);
  for (NamedTensor& tensor : state_tensors()) {
    group_->copy_from_first({&tensor.value, 1});
  }
  Tensor sizes = at::tensor({next_step_, std::ssize(notes)}, at::kLong);
  group_->copy_from_first({&sizes, 1});
  next_step_ = sizes[0].item<int64_t>();
  std::string of_first(static_cast<size_t>(sizes[1].item<int64_t>()), '\0');
  if (!of_first.empty()) {
    Tensor bytes = at::zeros({std::ssize(of_first)}, at::kByte);
    if (group_->rank() == 0) {
      std::memcpy(bytes.data_ptr<uint8_t>(), notes.data(), notes.size());
    }
    group_->copy_from_first({&bytes, 1});
    std::memcpy(of_first.data(), bytes.data_ptr<uint8_t>(), of_first.size());
  }
  return of_first;
}

}  // namespace octet::train
