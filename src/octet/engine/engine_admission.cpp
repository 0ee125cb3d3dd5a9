#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/engine/engine_worker.h"

namespace octet {

std::shared_ptr<ReplyStream> Engine::Worker::submit(
    EngineRequest request, std::function<void()> on_event
) {
  OCTET_CHECK(request.generate.cancelled == nullptr && request.generate.constraint == nullptr);
  check_request(request.generate, context_, options_.context_length);
  auto job = std::make_unique<Job>();
  job->stream = std::make_shared<ReplyStream>(std::move(on_event));
  const bool can_think = tokenizer_->chat_tokens().channel_close != kNoToken;
  if (request.thinking_budget && !can_think) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "a thinking budget was given and the model's vocabulary has no token that closes a thought"
    );
  }
  if (request.pin_prompt && slots_of(options_) <= options_.parallel) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "a text to be kept for ever needs a slot beside those of {} replies at once, and there "
            "are {}",
            options_.parallel,
            slots_of(options_)
        )
    );
  }
  if (can_think && request.speech_deadline_ms == 0.0) {
    const double end = request.deadline_ms;
    const double clause = request.first_clause_deadline_ms;
    request.speech_deadline_ms =
        (end > 0.0 && clause > 0.0 ? std::min(end, clause) : end + clause) / 2.0;
  }
  if (can_think) {
    job->thinking = std::make_unique<ThinkingBudget>(
        *tokenizer_,
        ThinkingBudget::Options{request.thinking_budget, request.thinking_close},
        std::move(request.constraint)
    );
    job->thinking->start(request.generate.prompt);
    request.generate.constraint = job->thinking.get();
  } else {
    request.generate.constraint = request.constraint.get();
  }
  request.generate.cancelled = &job->stream->cancelled();
  request.generate.keep_draft_context = drafter_.max_drafts() > 0;
  // Other texts may continue this prompt: regenerated replies, and histories without the thoughts.
  std::vector<int64_t>& marks = request.generate.marks;
  marks.push_back(std::ssize(request.generate.prompt));
  std::sort(marks.begin(), marks.end());
  job->request = std::move(request);
  const int64_t bytes = most_bytes(*job);
  if (options_.cache_bytes > 0 && bytes > options_.cache_bytes) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format(
            "prompt and reply may take {} positions, {} bytes of keys and values, and the ceiling "
            "is {} bytes: ask for fewer tokens or raise it",
            positions(*job),
            bytes,
            options_.cache_bytes
        )
    );
  }
  std::shared_ptr<ReplyStream> stream = job->stream;
  {
    const std::lock_guard lock(mutex_);
    if (draining_ || stopping_ || (!job->request.warm_up && !room_to_wait())) {
      return nullptr;
    }
    // Behind its equals.
    const auto place = std::ranges::find_if(queue_, [&](const std::unique_ptr<Job>& other) {
      return other->request.priority < job->request.priority;
    });
    queue_.insert(place, std::move(job));
    std::erase_if(streams_, [](const std::weak_ptr<ReplyStream>& s) { return s.expired(); });
    streams_.push_back(stream);
  }
  wake_.notify_all();
  return stream;
}

/// Those that can start at once do not wait. Under the mutex.
bool Engine::Worker::room_to_wait() const {
  const int64_t places = std::max<int64_t>(0, options_.parallel - in_the_making_);
  return std::ssize(queue_) < options_.queue_length + places;
}
/// Somebody is just now processing a beginning that the job shares: it will be there to copy.
bool Engine::Worker::worth_waiting(const Job& job) const {
  const std::vector<TokenId>& prompt = job.request.generate.prompt;
  for (const std::unique_ptr<Job>& other : running_) {
    const Sequence& sequence = other->run->sequence();
    if (other->request.priority < job.request.priority || other->decoding()) {
      continue;
    }
    const int64_t shared = common_prefix(sequence.tokens, prompt);
    for (const int64_t mark : sequence.marks) {
      if (mark <= shared && mark > sequence.cache->length() &&
          mark >= pool_.longest_prefix(prompt) + options_.shared_prompt_rows / 2) {
        return true;
      }
    }
  }
  return false;
}

int64_t Engine::Worker::positions(const Job& job) const {
  const GenerateRequest& generate = job.request.generate;
  return std::min(options_.context_length, std::ssize(generate.prompt) + generate.max_tokens);
}

/// Whether it and all that run can grow to their limits below the ceiling. One alone always may.
bool Engine::Worker::fits(const Job& job) const {
  return fits_beside(job, std::numeric_limits<int>::min());
}

/// The same, beside those that run with at least such a priority.
bool Engine::Worker::fits_beside(const Job& job, int least_priority) const {
  int64_t bytes = most_bytes(job) + pool_.pinned_bytes();
  bool alone = true;
  for (const std::unique_ptr<Job>& other : running_) {
    if (other->request.priority >= least_priority) {
      bytes += most_bytes(*other);
      alone = false;
    }
  }
  return options_.cache_bytes == 0 || alone || bytes <= options_.cache_bytes;
}

/// For one that lacks a slot or memory: the least urgent reply in the making, of those the latest,
/// goes back to the queue, if it is less urgent than the job. False: none is, or all of them would
/// not make room enough. Under the mutex.
bool Engine::Worker::make_way(const Job& job) {
  if (!fits_beside(job, job.request.priority)) {
    return false;
  }
  auto least = running_.end();
  for (auto other = running_.begin(); other != running_.end(); ++other) {
    if ((*other)->request.priority < job.request.priority &&
        (least == running_.end() || (*other)->request.priority <= (*least)->request.priority)) {
      least = other;
    }
  }
  if (least == running_.end()) {
    return false;
  }
  suspend(**least);
  // Before its equals: it was there first.
  const int priority = (*least)->request.priority;
  const auto place = std::ranges::find_if(queue_, [&](const std::unique_ptr<Job>& other) {
    return other->request.priority <= priority;
  });
  queue_.splice(place, running_, least);
  return true;
}

void Engine::Worker::admit() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(forgetting_, false)) {
    pool_.forget_idle();
  }
  for (auto place = queue_.begin(); place != queue_.end();) {
    Job& job = **place;
    const auto rivals = std::ranges::count_if(running_, [&](const std::unique_ptr<Job>& other) {
      return other->request.priority >= job.request.priority;
    });
    if (rivals >= options_.parallel) {
      break;  // those behind it are no more urgent
    }
    if (worth_waiting(job)) {
      ++place;
      continue;
    }
    try {
      const SlotPool::Lease lease =
          fits(job) ? pool_.acquire(job.text(), positions(job)) : SlotPool::Lease();
      if (lease.slot == nullptr && make_way(job)) {
        continue;
      }
      if (lease.slot == nullptr) {
        break;
      }
      start(job, lease);
    } catch (const Error& error) {  // the system refused a slot's memory, say
      fail(job, error);
      place = queue_.erase(place);
      continue;
    } catch (const std::bad_alloc&) {
      fail(job, Error(ErrorKind::kResourceExhausted, "out of memory; ask for fewer tokens"));
      place = queue_.erase(place);
      continue;
    }
    running_.splice(running_.end(), queue_, place++);
  }
  in_the_making_ = std::ssize(running_);
}

void Engine::Worker::start(Job& job, SlotPool::Lease lease) {
  job.slot = lease.slot;
  if (job.run != nullptr) {
    job.run->resume(*lease.slot, lease.kept);
    return;
  }
  job.report.started = true;
  job.report.queue_ms = job.age_ms(Clock::now());
  job.run = std::make_unique<ReplyRun>(context_, job.request.generate, *lease.slot, lease.kept);
  job.report.prompt_tokens = std::ssize(job.request.generate.prompt);
  job.report.reused_tokens = lease.kept;
  job.stream->push(ReplyStarted{job.report.prompt_tokens, lease.kept});
}

/// Its text stays, for itself as for others, as long as nobody needs the place.
void Engine::Worker::suspend(Job& job) {
  job.run->suspend();
  release(*std::exchange(job.slot, nullptr));
}

}  // namespace octet
