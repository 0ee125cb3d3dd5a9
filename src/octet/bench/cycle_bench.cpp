#include "octet/bench/cycle_bench.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"

namespace octet {
namespace {

constexpr int64_t kInjectRows = 4;  // about the rows that a step commits
constexpr int64_t kFirstTokenPrompt = 16;
constexpr double kShortPassesMs = 10.0;
constexpr int kMostShortPasses = 64;

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// The passes that process a prompt behind `context` positions, as the verify cycle feeds them:
/// features for the drafter's window (all of a prompt that continues a context), logits for the
/// last row.
std::vector<PassRows> prompt_passes(
    int64_t context, int64_t length, const CycleBenchInputs& inputs
) {
  const int64_t window = inputs.drafter != nullptr ? inputs.drafter->shape().window : 0;
  const int64_t last = context + length;
  const int64_t first_feature =
      window > 0 && context == 0 ? std::max<int64_t>(0, length - window) : context;
  std::vector<PassRows> passes;
  for (int64_t at = context; at < last;) {
    const int64_t rows = std::min(inputs.target.max_rows(), last - at);
    const int64_t end = at + rows;
    const int64_t features = std::min(rows, std::max<int64_t>(0, end - first_feature));
    passes.push_back(
        {.position = at,
         .rows = rows,
         .logits_rows = end == last ? 1 : 0,
         .feature_rows = inputs.drafter != nullptr ? features : 0}
    );
    at = end;
  }
  return passes;
}

std::span<const int> taps_of(const CycleBenchInputs& inputs) {
  return inputs.drafter != nullptr ? std::span<const int>(inputs.drafter->shape().taps)
                                   : std::span<const int>();
}

/// Of the passes behind a context.
int64_t most_rows(const CycleBenchOptions& options) {
  return std::max({kPublishedBlock, kFirstTokenPrompt, options.verify_rows});
}

/// The models, one prepared cache a context, and the tokens and features to feed them with.
class Subject {
 public:
  Subject(const CycleBenchInputs& inputs, const CycleBenchOptions& options)
      : inputs_(inputs), options_(options) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<TokenId> token(
        0, static_cast<TokenId>(inputs.target.shape().vocabulary - 1)
    );
    int64_t most = most_rows(options);
    for (const int64_t prompt : options.prompts) {
      most = std::max(most, prompt);
    }
    tokens_.resize(static_cast<size_t>(most));
    std::generate(tokens_.begin(), tokens_.end(), [&] { return token(random); });
    for (const int64_t context : options.contexts) {
      target_caches_.push_back(
          inputs.target.new_cache(context + most_rows(options), options.kv_type)
      );
      target_caches_.back()->fill_for_measurement(context);
      if (inputs.drafter != nullptr) {
        draft_caches_.push_back(inputs.drafter->new_cache(context + kFirstTokenPrompt));
        fill_draft(*draft_caches_.back(), context);
      }
    }
  }

  double forward_ms(size_t context, int64_t rows) {
    SequenceCache& cache = *target_caches_[context];
    const int64_t length = cache.length();
    const SequenceRows segment = {
        .cache = &cache,
        .tokens = std::span(tokens_).first(static_cast<size_t>(rows)),
        .logits_rows = rows,
        .feature_rows = inputs_.drafter != nullptr ? rows : 0};
    const auto begin = std::chrono::steady_clock::now();
    inputs_.target.forward({&segment, 1}, taps_of(inputs_), rows_);
    const double ms = ms_since(begin);
    cache.truncate(length);
    return ms;
  }

  void add_bytes(CycleReport& report) const {
    for (const auto& cache : target_caches_) {
      report.kv_bytes += cache->bytes();
    }
    for (const auto& cache : draft_caches_) {
      report.draft_context_bytes += cache->bytes();
    }
    report.logits_bytes = static_cast<int64_t>(logits_.capacity() * sizeof(float));
  }

  double draft_ms(size_t context) {
    const DraftRequest request = {.cache = draft_caches_[context].get(), .anchor = tokens_.front()};
    const DraftShape& shape = inputs_.drafter->shape();
    logits_.resize(static_cast<size_t>((shape.block - 1) * shape.vocabulary));
    const Rows logits = {logits_.data(), shape.block - 1, shape.vocabulary, shape.vocabulary};
    const auto begin = std::chrono::steady_clock::now();
    inputs_.drafter->draft({&request, 1}, logits);
    return ms_since(begin);
  }

  double inject_ms(size_t context) {
    DraftCache& cache = *draft_caches_[context];
    const int64_t length = cache.length();
    const ConstRows features = random_features(kInjectRows);
    const auto begin = std::chrono::steady_clock::now();
    inputs_.drafter->inject(cache, features);
    const double ms = ms_since(begin);
    cache.truncate(length);
    return ms;
  }

  /// A prompt from nothing.
  double prompt_ms(int64_t length) {
    const auto cache = inputs_.target.new_cache(length + 1, options_.kv_type);
    DraftModel* drafter = inputs_.drafter;
    const auto draft_cache = drafter != nullptr ? drafter->new_cache(length) : nullptr;
    return feed_ms(*cache, draft_cache.get(), length);
  }

  /// A short prompt behind a context.
  double first_token_ms(size_t context) {
    SequenceCache& cache = *target_caches_[context];
    DraftCache* draft_cache = inputs_.drafter != nullptr ? draft_caches_[context].get() : nullptr;
    const int64_t length = cache.length();
    const double ms = feed_ms(cache, draft_cache, kFirstTokenPrompt);
    cache.truncate(length);
    if (draft_cache != nullptr) {
      draft_cache->truncate(length);
    }
    return ms;
  }

  /// Positions that a draft at this context finds.
  int64_t draft_context(size_t context) const {
    const DraftCache& cache = *draft_caches_[context];
    return cache.length() - cache.valid_from();
  }

 private:
  double feed_ms(SequenceCache& cache, DraftCache* draft_cache, int64_t length) {
    const int64_t context = cache.length();
    const std::vector<PassRows> passes = prompt_passes(context, length, inputs_);
    const auto begin = std::chrono::steady_clock::now();
    for (const PassRows& pass : passes) {
      const SequenceRows segment = {
          .cache = &cache,
          .tokens = std::span(tokens_).subspan(
              static_cast<size_t>(pass.position - context), static_cast<size_t>(pass.rows)
          ),
          .logits_rows = pass.logits_rows,
          .feature_rows = pass.feature_rows};
      inputs_.target.forward({&segment, 1}, taps_of(inputs_), rows_);
      if (pass.feature_rows > 0) {
        const int64_t first = pass.position + pass.rows - pass.feature_rows;
        if (draft_cache->length() != first) {
          draft_cache->restart(first);
        }
        inputs_.drafter->inject(*draft_cache, rows_.features);
      }
    }
    return ms_since(begin);
  }

  ConstRows random_features(int64_t rows) {
    const int64_t cols =
        static_cast<int64_t>(inputs_.drafter->shape().taps.size()) * inputs_.target.shape().hidden;
    if (features_.size() < static_cast<size_t>(rows * cols)) {
      std::mt19937_64 random(2);
      std::normal_distribution<float> normal;
      features_.resize(static_cast<size_t>(rows * cols));
      std::generate(features_.begin(), features_.end(), [&] { return normal(random); });
    }
    return {features_.data(), rows, cols, cols};
  }

  void fill_draft(DraftCache& cache, int64_t context) {
    const int64_t window = inputs_.drafter->shape().window;
    const int64_t rows = window > 0 ? std::min(context, window) : std::min<int64_t>(context, 4096);
    cache.restart(context - rows);
    constexpr int64_t kChunk = 64;
    for (int64_t done = 0; done < rows; done += kChunk) {
      inputs_.drafter->inject(cache, random_features(std::min(kChunk, rows - done)));
    }
  }

  const CycleBenchInputs& inputs_;
  const CycleBenchOptions& options_;
  std::vector<TokenId> tokens_;
  std::vector<std::unique_ptr<SequenceCache>> target_caches_;
  std::vector<std::unique_ptr<DraftCache>> draft_caches_;
  std::vector<float> features_;
  std::vector<float> logits_;
  ForwardRows rows_;
};

/// One quantity to measure: how, and what the least cost would be.
struct Task {
  CycleRow row;
  std::function<double()> measure;
  int rounds = 0;
};

double floor_ms(const Task& task, const MachineLimits& limits) {
  const double memory = static_cast<double>(task.row.floor_bytes) / limits.read_bytes_per_s;
  // Float weights are BF16 ones nearly always: the faster of the two ways to multiply those.
  const double float_peak = std::max(limits.bf16_operations_per_s, limits.float_operations_per_s);
  const double arithmetic =
      static_cast<double>(task.row.int8_operations) / limits.int8_operations_per_s +
      static_cast<double>(task.row.float_operations) / float_peak;
  return 1000.0 * std::max(memory, arithmetic);
}

/// A pass in use. The probe of the machine's limits sweeps the caches, which a small model's
/// weights have come back to after one pass; so short passes are taken again, and their median
/// counts.
double settled_ms(Task& task, ProfilingOps& profiler) {
  std::vector<double> passes;
  double total = 0.0;
  do {
    profiler.take();
    const double ms = task.measure();
    task.row.profile = profiler.take();
    task.row.profile_ms = ms;
    if (passes.empty() && ms >= kShortPassesMs) {
      return ms;
    }
    passes.push_back(ms);
    total += ms;
  } while (total < kShortPassesMs && std::ssize(passes) < kMostShortPasses);
  return median(std::move(passes));
}

/// The first pass of everything, which warms caches and buffers. A first token comes before all
/// else, as it does in use.
void warm(std::vector<Task>& tasks, ProfilingOps& profiler) {
  std::vector<Task*> order;
  order.reserve(tasks.size());
  for (Task& task : tasks) {
    order.push_back(&task);
  }
  std::stable_partition(order.begin(), order.end(), [](const Task* task) {
    return task->row.name == "first token";
  });
  for (Task* task : order) {
    profiler.take();
    task->row.first_ms = task->measure();
    task->row.first_profile = profiler.take();
  }
}

class TaskList {
 public:
  TaskList(Subject& subject, const CycleBenchInputs& inputs, const CycleBenchOptions& options)
      : subject_(subject), inputs_(inputs), options_(options) {
    for (size_t context = 0; context < options.contexts.size(); ++context) {
      add_forwards(context);
      if (inputs.drafter != nullptr) {
        add_draft(context);
      }
      add_first_token(context);
    }
    for (const int64_t prompt : options.prompts) {
      add_prefill(prompt);
    }
  }

  std::vector<Task>& tasks() { return tasks_; }

 private:
  static void set_floor(CycleRow& row, const PassWork& work) {
    row.floor_bytes = work.weight_bytes + work.kv_bytes;
    row.int8_operations = 2 * work.int8_multiply_adds;
    row.float_operations = 2 * work.float_multiply_adds;
  }

  PassWork pass_work(const PassRows& rows) const {
    return inputs_.target.pass_work(rows, taps_of(inputs_), options_.kv_type);
  }

  void add_forwards(size_t context) {
    const int64_t position = options_.contexts[context];
    for (int64_t rows = 1; rows <= std::max(kPublishedBlock, options_.verify_rows); ++rows) {
      Task task;
      task.row.name = CycleReport::verify_name(rows);
      task.row.context = position;
      task.row.rows = rows;
      set_floor(task.row, pass_work({.position = position, .rows = rows, .logits_rows = rows}));
      task.measure = [this, context, rows] { return subject_.forward_ms(context, rows); };
      task.rounds = options_.rounds;
      tasks_.push_back(std::move(task));
    }
  }

  void add_draft(size_t context) {
    Task draft;
    draft.row.name = "C_d";
    draft.row.context = options_.contexts[context];
    draft.row.rows = inputs_.drafter->shape().block;
    set_floor(draft.row, inputs_.drafter->block_work(subject_.draft_context(context)));
    draft.measure = [this, context] { return subject_.draft_ms(context); };
    draft.rounds = options_.rounds;
    tasks_.push_back(std::move(draft));

    Task inject;
    inject.row.name = fmt::format("inject({})", kInjectRows);
    inject.row.context = options_.contexts[context];
    inject.row.rows = kInjectRows;
    set_floor(inject.row, inputs_.drafter->inject_work(kInjectRows));
    inject.measure = [this, context] { return subject_.inject_ms(context); };
    inject.rounds = options_.rounds;
    tasks_.push_back(std::move(inject));
  }

  void add_first_token(size_t context) {
    Task task;
    task.row.name = "first token";
    task.row.context = options_.contexts[context];
    task.row.rows = kFirstTokenPrompt;
    set_floor(task.row, prompt_work(task.row.context, task.row.rows));
    task.measure = [this, context] { return subject_.first_token_ms(context); };
    task.rounds = options_.rounds;
    tasks_.push_back(std::move(task));
  }

  void add_prefill(int64_t length) {
    if (options_.prompt_rounds < 1) {
      return;
    }
    Task task;
    task.row.name = "prefill";
    task.row.rows = length;
    set_floor(task.row, prompt_work(0, length));
    task.measure = [this, length] { return subject_.prompt_ms(length); };
    task.rounds = options_.prompt_rounds;
    tasks_.push_back(std::move(task));
  }

  PassWork prompt_work(int64_t context, int64_t length) const {
    PassWork work;
    for (const PassRows& pass : prompt_passes(context, length, inputs_)) {
      work.add(pass_work(pass));
      if (pass.feature_rows > 0) {
        work.add(inputs_.drafter->inject_work(pass.feature_rows));
      }
    }
    return work;
  }

  Subject& subject_;
  const CycleBenchInputs& inputs_;
  const CycleBenchOptions& options_;
  std::vector<Task> tasks_;
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0.0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double CycleRow::median_ms() const {
  return median(ms);
}
double CycleRow::best_ms() const {
  return ms.empty() ? 0.0 : *std::min_element(ms.begin(), ms.end());
}
double CycleRow::median_floor_ratio() const {
  return median(floor_ratio);
}

const CycleRow* CycleReport::find(std::string_view name, int64_t context) const {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const CycleRow& row) {
    return row.name == name && row.context == context;
  });
  return at == rows.end() ? nullptr : &*at;
}

double CycleReport::ratio_to_plain(std::string_view name, int64_t context) const {
  const CycleRow* plain = find("C_t", context);
  const CycleRow* other = find(name, context);
  if (plain == nullptr || other == nullptr) {
    return 0.0;
  }
  std::vector<double> ratios;
  for (size_t round = 0; round < std::min(plain->ms.size(), other->ms.size()); ++round) {
    ratios.push_back(other->ms[round] / plain->ms[round]);
  }
  return median(std::move(ratios));
}

double CycleReport::speedup(double acceptance_length, int64_t context) const {
  const double draft = ratio_to_plain("C_d", context);
  const double verify = ratio_to_plain(verify_name(verify_rows), context);
  const double inject = ratio_to_plain(fmt::format("inject({})", kInjectRows), context);
  return draft > 0.0 && verify > 0.0 ? acceptance_length / (draft + verify + inject) : 0.0;
}

std::string CycleReport::verify_name(int64_t rows) {
  return rows == 1 ? "C_t" : fmt::format("C_v({})", rows);
}

CycleReport run_cycle_bench(const CycleBenchInputs& inputs, const CycleBenchOptions& options) {
  OCTET_CHECK(options.rounds >= 1 && options.verify_rows >= 1);
  Subject subject(inputs, options);
  TaskList list(subject, inputs, options);
  std::vector<Task>& tasks = list.tasks();
  warm(tasks, inputs.profiler);
  CycleReport report;
  report.verify_rows = options.verify_rows;
  for (int round = 0; round < options.rounds; ++round) {
    const MachineLimits limits = inputs.probe.measure();
    report.limits.push_back(limits);
    for (Task& task : tasks) {
      if (round < task.rounds) {
        const double ms = settled_ms(task, inputs.profiler);
        task.row.ms.push_back(ms);
        task.row.floor_ratio.push_back(ms / floor_ms(task, limits));
      }
    }
    if (options.compare_ms) {
      report.compare_ms.push_back(options.compare_ms());
    }
    if (options.progress) {
      options.progress(round + 1);
    }
  }
  for (Task& task : tasks) {
    report.rows.push_back(std::move(task.row));
  }
  subject.add_bytes(report);
  return report;
}

}  // namespace octet
