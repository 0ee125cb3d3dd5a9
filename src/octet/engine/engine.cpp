#include "octet/engine/engine.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/engine/engine_worker.h"
#include "octet/speculation/learn_costs.h"

namespace octet {
namespace {

/// Of one step, the weight in what steps took of late.
constexpr double kStepWeight = 0.2;

}  // namespace

Engine::Worker::Worker(
    TargetModel& target,
    Drafter& drafter,
    std::shared_ptr<const Tokenizer> tokenizer,
    EngineOptions options,
    EngineObserver* observer
)
    : target_(target),
      drafter_(drafter),
      tokenizer_(std::move(tokenizer)),
      options_(options),
      observer_(observer),
      cycle_(target, drafter),
      pool_(
          target,
          drafter,
          {slots_of(options),
           options.cache_bytes,
           options.draft_context_bytes,
           checked_context_length(options.context_length, target.shape()),
           options.kv_type}
      ),
      context_{target, drafter, *tokenizer_, cycle_.costs(), habits_} {
  OCTET_CHECK(options.parallel >= 1 && options.step_rows >= 1 && options.queue_length >= 0);
  options_.context_length = checked_context_length(options.context_length, target.shape());
  status_.cache_bytes_limit = options_.cache_bytes;
  learn_costs(cycle_, target, drafter, options.learn_costs_ms);
  update_status();
  thread_ = std::thread([this] { loop(); });
}

Engine::Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Engine::Worker::cut_text(std::vector<TokenId> text, int64_t length) {
  OCTET_CHECK(length >= 0 && length <= std::ssize(text));
  {
    const std::lock_guard lock(mutex_);
    cuts_.emplace_back(std::move(text), length);
  }
  wake_.notify_all();
}

void Engine::Worker::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

void Engine::Worker::forget_texts() {
  const std::lock_guard lock(mutex_);
  forgetting_ = true;
}

bool Engine::Worker::idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty() && in_the_making_ == 0;
}

void Engine::Worker::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<ReplyStream>& weak : streams_) {
    if (const auto stream = weak.lock()) {
      stream->cancel();
    }
  }
}

EngineStatus Engine::Worker::status() const {
  const std::lock_guard lock(mutex_);
  EngineStatus status = status_;
  status.running = in_the_making_;
  status.waiting = std::ssize(queue_);
  return status;
}

void Engine::Worker::loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (running_.empty() && queue_.empty() && cuts_.empty()) {
        wake_.wait(lock, [this] { return stopping_ || !queue_.empty() || !cuts_.empty(); });
      }
      if (stopping_) {
        break;
      }
    }
    if (!work()) {
      // Nothing could be done although somebody waits: only a cancellation or a deadline helps.
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(5));
    }
  }
  for (const std::unique_ptr<Job>& job : running_) {
    finish(*job, FinishReason::kCancelled);
  }
  running_.clear();
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Job>& job : queue_) {
    finish(*job, FinishReason::kCancelled);
  }
  queue_.clear();
}

bool Engine::Worker::work() {
  reap();
  cut();
  admit();
  const std::vector<Job*> batch = plan();
  if (!batch.empty()) {
    step(batch);
  }
  update_status();
  return !batch.empty();
}

/// Ends what was cancelled or is late, in the making or still waiting.
void Engine::Worker::reap() {
  const Clock::time_point now = Clock::now();
  const auto cancelled = [](const Job& job) {
    return job.stream->cancelled().load(std::memory_order_relaxed);
  };
  Jobs over;
  const auto take_over = [&](Jobs& jobs) {
    for (auto place = jobs.begin(); place != jobs.end();) {
      const auto here = place++;
      if (cancelled(**here) || (*here)->late(now)) {
        over.splice(over.end(), jobs, here);
      }
    }
  };
  take_over(running_);
  {
    const std::lock_guard lock(mutex_);
    take_over(queue_);
    in_the_making_ = std::ssize(running_);  // before anybody hears of an end and asks again
  }
  for (const std::unique_ptr<Job>& job : over) {
    finish(*job, cancelled(*job) ? FinishReason::kCancelled : FinishReason::kDeadline);
  }
}

void Engine::Worker::cut() {
  std::vector<std::pair<std::vector<TokenId>, int64_t>> cuts;
  {
    const std::lock_guard lock(mutex_);
    cuts.swap(cuts_);
  }
  for (const auto& [text, length] : cuts) {
    pool_.cut(text, length);
  }
}

/// The last event. The job may not have been started.
void Engine::Worker::finish(Job& job, FinishReason reason) {
  ReplyFinished finished;
  if (job.run != nullptr) {
    if (!job.run->finished()) {
      finished.rest = job.run->end(reason);
    }
    finished.result = job.run->take_result();
    if (job.slot != nullptr) {
      retire(job);
    }
  } else {
    finished.result.finish = reason;
    finished.result.prompt_tokens = std::ssize(job.request.generate.prompt);
    job.report.prompt_tokens = finished.result.prompt_tokens;
    job.report.queue_ms = job.age_ms(Clock::now());
  }
  if (job.thinking != nullptr) {
    finished.thinking_tokens = job.thinking->used();
    finished.thinking_closed = job.thinking->closed_by_force();
  }
  job.report.finish = finished.result.finish;
  job.report.reply_tokens = std::ssize(finished.result.tokens);
  job.report.total_ms = job.age_ms(Clock::now());
  job.report.acceptance = finished.result.acceptance;
  job.report.break_even_length = costs().break_even_length();
  finished.report = job.report;
  if (observer_ != nullptr && !job.request.warm_up) {
    observer_->on_reply(job.report);
  }
  job.stream->push(std::move(finished));
}

void Engine::Worker::fail(Job& job, const Error& error) {
  job.run.reset();
  if (job.slot != nullptr) {
    job.slot->forget();  // the caches may stand anywhere
    pool_.release(*job.slot);
    job.slot = nullptr;
  }
  job.report.finish = FinishReason::kFailed;
  job.report.total_ms = job.age_ms(Clock::now());
  if (!job.report.started) {
    job.report.queue_ms = job.report.total_ms;
  }
  if (observer_ != nullptr && !job.request.warm_up) {
    observer_->on_reply(job.report);
  }
  job.stream->push(ReplyFailed{error});
}

/// Gives the slot back; its text stays for whoever continues it.
void Engine::Worker::retire(Job& job) {
  const bool whole_prompt = job.slot->sequence.reply_length() > 0;
  job.run.reset();
  Slot& slot = *std::exchange(job.slot, nullptr);
  const bool room = pool_.pinned() + options_.parallel < slots_of(options_);
  if (job.request.pin_prompt && whole_prompt && room) {
    const int64_t length = std::min(slot.sequence.prompt_length, slot.sequence.cache->length());
    if (slot.can_return_to(length)) {
      slot.keep(length);
    }
    pool_.pin(slot);
  } else {
    release(slot);
  }
}

/// What was processed is what may be continued.
void Engine::Worker::release(Slot& slot) {
  slot.sequence.tokens.resize(
      static_cast<size_t>(std::min(slot.sequence.length(), slot.sequence.cache->length() + 1))
  );
  pool_.release(slot);
}

/// Before the next step makes the rings forget a place that others may continue from, or leaves a
/// gap in the drafter's context behind it, that place is copied.
void Engine::Worker::keep_beginnings(Job& job) {
  Sequence& sequence = job.run->sequence();
  const int64_t rows = job.rows();
  const int64_t here = sequence.cache->length();
  std::vector<int64_t>& marks = sequence.marks;
  for (size_t i = 0; i < marks.size() && marks[i] <= here;) {
    const int64_t goal = i + 1 < marks.size() ? marks[i + 1] : sequence.length();
    const int64_t window = std::min(goal, drafter_.feature_window());
    const bool gap = marks[i] == here && goal - window - kMarkSlack > here;
    const int64_t earliest = std::max<int64_t>(0, marks[i] - kMarkSlack);
    const bool going =
        job.slot->can_return_to(marks[i]) && (gap || !job.slot->remembers(earliest, rows));
    if (going) {
      pool_.keep_copy(*job.slot, marks[i]);
    }
    if (going || !job.slot->can_return_to(marks[i])) {
      marks.erase(marks.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

/// Who takes part in the next step, and with how many rows.
std::vector<Job*> Engine::Worker::plan() {
  if (running_.empty()) {
    return {};
  }
  int highest = running_.front()->request.priority;
  for (const std::unique_ptr<Job>& job : running_) {
    highest = std::max(highest, job->request.priority);
  }
  std::vector<Job*> decoding;
  std::vector<Job*> reading;
  for (const std::unique_ptr<Job>& job : running_) {
    const auto taken = std::ssize(decoding) + std::ssize(reading);
    if (job->request.priority == highest && taken < options_.parallel) {
      (job->decoding() ? decoding : reading).push_back(job.get());
    }
  }
  int64_t rows = std::max<int64_t>(1, options_.step_rows - std::ssize(decoding));
  if (!decoding.empty()) {
    rows = std::min(rows, options_.shared_prompt_rows);
  }
  std::vector<Job*> batch = decoding;
  int64_t prompt_rows = 0;
  for (Job* job : reading) {
    const int64_t chunk = std::min(rows, job->unread());
    if (chunk > 0) {
      job->run->sequence().chunk_rows = chunk;
      rows -= chunk;
      prompt_rows += chunk;
      batch.push_back(job);
    }
  }
  plan_drafts(decoding, prompt_rows);
  return batch;
}

void Engine::Worker::plan_drafts(const std::vector<Job*>& decoding, int64_t prompt_rows) {
  const bool alone = decoding.size() == 1 && prompt_rows == 0;
  planned_ = true;
  std::vector<CompanyMember> members;
  std::vector<Sequence*> sequences;
  for (Job* job : decoding) {
    Sequence& sequence = job->run->sequence();
    sequence.planned_drafts = -1;
    if (sequence.policy == nullptr || alone) {
      planned_ = false;
      continue;  // a fixed length, or the sequence's own policy
    }
    members.push_back({sequence.policy, std::min(sequence.draft_max, drafter_.max_drafts())});
    sequences.push_back(&sequence);
  }
  if (members.empty()) {
    return;
  }
  const auto others = std::ssize(decoding) - std::ssize(members);
  const std::vector<int> drafts = company_.plan(members, prompt_rows + others);
  for (size_t i = 0; i < drafts.size(); ++i) {
    sequences[i]->planned_drafts = drafts[i];
  }
}

void Engine::Worker::step(const std::vector<Job*>& batch) {
  const Clock::time_point begin = Clock::now();
  end_late_thoughts(batch);
  make_room(batch);
  try {
    std::vector<Sequence*> sequences;
    for (Job* job : batch) {
      keep_beginnings(*job);
      sequences.push_back(&job->run->sequence());
    }
    const StepReport report = cycle_.step(sequences);
    for (size_t i = 0; i < batch.size(); ++i) {
      try {
        publish(*batch[i], report.sequences[i], report.times);
      } catch (const Error& error) {
        fail(*batch[i], error);  // its own constraint gave up; the others go on
      }
    }
    observe(batch, report);
    if (std::ranges::any_of(report.sequences, [](const SequenceStep& s) { return !s.prompt; })) {
      const double ms = ms_between(begin, Clock::now());
      step_ms_ = std::max(ms, step_ms_ + kStepWeight * (ms - step_ms_));
    }
  } catch (const Error& error) {
    for (Job* job : batch) {
      fail(*job, error);
    }
  } catch (const std::bad_alloc&) {
    for (Job* job : batch) {
      fail(
          *job, Error(ErrorKind::kResourceExhausted, "out of memory in a step; use shorter texts")
      );
    }
  }
  update_status();  // before anybody hears that a reply is over and asks
  for (Job* job : batch) {
    if (job->run != nullptr && job->run->finished()) {
      finish(*job, FinishReason::kNone);
    }
  }
  std::erase_if(running_, [](const std::unique_ptr<Job>& job) { return job->slot == nullptr; });
}

void Engine::Worker::end_late_thoughts(const std::vector<Job*>& batch) {
  const Clock::time_point now = Clock::now();
  for (Job* job : batch) {
    if (job->thinking == nullptr) {
      continue;
    }
    double& deadline = job->request.speech_deadline_ms;
    const bool late = deadline > 0.0 && job->age_ms(now) + job->ms_to_speech(step_ms_) > deadline;
    if (job->stream->take_end_thinking() || late) {
      job->thinking->end_now();
      deadline = 0.0;
    }
  }
}

/// The ceiling holds while texts grow, too: idle ones go before the step needs their place.
void Engine::Worker::make_room(const std::vector<Job*>& batch) {
  if (options_.cache_bytes == 0) {
    return;
  }
  int64_t growth = 0;
  for (Job* job : batch) {
    growth += job->growth_bytes(options_.draft_context_bytes);
  }
  pool_.make_room(growth);
}

void Engine::Worker::publish(Job& job, const SequenceStep& step, const StepTimes& times) {
  std::vector<EmittedToken> tokens = job.run->take(step, times);
  const Clock::time_point now = Clock::now();
  if (tokens.empty()) {
    if (job.report.first_token_ms == 0.0) {  // else it reads again what was given up
      job.stream->push(ReplyProgress{job.run->sequence().cache->length()});
    }
    return;
  }
  if (job.report.first_token_ms == 0.0) {
    job.report.first_token_ms = job.age_ms(now);
  } else {
    const double each = ms_between(job.last_tokens, now) / static_cast<double>(tokens.size());
    job.report.between_tokens_ms.insert(job.report.between_tokens_ms.end(), tokens.size(), each);
  }
  job.last_tokens = now;
  job.stream->push(ReplyTokens{std::move(tokens), step, times});
}

void Engine::Worker::observe(const std::vector<Job*>& batch, const StepReport& report) {
  CompanyStep company;
  bool forced = false;
  for (const SequenceStep& sequence : report.sequences) {
    (sequence.prompt ? company.prompt_rows : company.rows) += sequence.rows;
    company.sequences += sequence.prompt ? 0 : 1;
    company.tokens += sequence.prompt ? 0 : sequence.published;
    forced = forced || sequence.forced > 0;
    if (sequence.drafted > sequence.forced) {
      company.fates.push_back({sequence.accepted, sequence.judged()});
    }
  }
  drafted_ = drafted_ || !company.fates.empty();
  const StepTimes& times = report.times;
  if (company.sequences > 0) {
    company.planned = planned_ && !forced;
    company.drafting = std::ssize(company.fates);
    company.forward_ms = times.forward_ms + times.verify_ms + times.commit_ms;
    company.draft_ms = times.draft_ms;
    company_.observe(company);
  }
  if (observer_ != nullptr) {
    tell(batch, report);
  }
}

/// The step as far as it was for clients.
void Engine::Worker::tell(const std::vector<Job*>& batch, const StepReport& report) {
  EngineStep step;
  step.times = report.times;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i]->request.warm_up) {
      continue;
    }
    const SequenceStep& sequence = report.sequences[i];
    step.prompt_rows += sequence.prompt ? sequence.rows : 0;
    step.decoding += sequence.prompt ? 0 : 1;
    step.tokens += sequence.published;
    step.sequences.push_back(sequence);
  }
  if (!step.sequences.empty()) {
    observer_->on_step(step);
  }
}

/// What the steps of one sequence cost.
EngineStatus Engine::Worker::costs() const {
  const StepCosts& costs = cycle_.costs();
  const int rows = drafter_.max_drafts() + 1;
  EngineStatus status;
  status.plain_step_ms = costs.knows_forward(1) ? costs.forward_ms(1) : 0.0;
  status.block_step_ms = costs.knows_forward(rows) ? costs.forward_ms(rows) : 0.0;
  status.draft_ms = costs.knows_draft() ? costs.draft_ms() : 0.0;
  return status;
}

void Engine::Worker::update_status() {
  const EngineStatus now = costs();
  const std::lock_guard lock(mutex_);
  // Without those that are over and are told so next.
  in_the_making_ = std::ranges::count_if(running_, [](const std::unique_ptr<Job>& job) {
    return job->run != nullptr && !job->run->finished();
  });
  status_.slots_idle = pool_.idle();
  status_.slots_pinned = pool_.pinned();
  status_.evictions = pool_.evictions();
  status_.cache_bytes = pool_.bytes();
  status_.draft_context_bytes = pool_.draft_context_bytes();
  status_.plain_step_ms = now.plain_step_ms;
  status_.block_step_ms = now.block_step_ms;
  status_.draft_ms = now.draft_ms;
  status_.drafted = drafted_;
}

Engine::Engine(
    TargetModel& target,
    Drafter& drafter,
    std::shared_ptr<const Tokenizer> tokenizer,
    EngineOptions options,
    EngineObserver* observer
)
    : worker_(std::make_unique<Worker>(target, drafter, std::move(tokenizer), options, observer)) {}

Engine::~Engine() = default;

std::shared_ptr<ReplyStream> Engine::submit(EngineRequest request, std::function<void()> on_event) {
  return worker_->submit(std::move(request), std::move(on_event));
}

void Engine::cut_text(std::vector<TokenId> text, int64_t length) {
  worker_->cut_text(std::move(text), length);
}

void Engine::drain() {
  worker_->drain();
}

void Engine::forget_texts() {
  worker_->forget_texts();
}

bool Engine::idle() const {
  return worker_->idle();
}

void Engine::cancel_all() {
  worker_->cancel_all();
}

EngineStatus Engine::status() const {
  return worker_->status();
}

int64_t Engine::context_length() const {
  return worker_->options().context_length;
}

int Engine::max_drafts() const {
  return worker_->max_drafts();
}

const EngineOptions& Engine::options() const {
  return worker_->options();
}

}  // namespace octet
