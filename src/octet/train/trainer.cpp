#include "octet/train/trainer.h"

#include <algorithm>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/train/state_file.h"

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
    report.rate_factor = settings_.schedule.factor(next_step_, settings_.steps);
    optimizer_.step(task_.parameters(), gradients, next_step_, report.rate_factor);
  }
  ++next_step_;
  return report;
}

void Trainer::save(const std::string& path, const std::string& run, const std::string& notes)
    const {
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
  write_state_file(path, tensors, {run, notes, next_step_});
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
  const NoGradient no_gradient;
  const auto parameters = task_.parameters().all();
  for (size_t i = 0; i < parameters.size(); ++i) {
    Optimizer::Moments& moments = optimizer_.moments()[i];
    file.copy_to("weight/" + parameters[i].name, parameters[i].value);
    file.copy_to("first/" + parameters[i].name, moments.first);
    if (moments.second.defined()) {
      file.copy_to("second/" + parameters[i].name, moments.second);
    }
  }
  next_step_ = file.facts.next_step;
  return file.facts.notes;
}

}  // namespace octet::train
