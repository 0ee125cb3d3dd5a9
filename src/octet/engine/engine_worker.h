// The worker behind an engine: its queue, its thread, and what it does between two steps and in
// one. For the sources of the engine alone. engine.cpp has its life and its steps,
// engine_admission.cpp who gets in and when. Invariants: the thread alone touches what is not
// guarded by the mutex; a job is either in the queue or runs.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "octet/engine/engine.h"
#include "octet/engine/job.h"
#include "octet/engine/reply_run.h"
#include "octet/engine/slot_pool.h"
#include "octet/speculation/company_policy.h"

namespace octet {

/// Texts kept, those in the making included.
inline int64_t slots_of(const EngineOptions& options) {
  return options.slots > 0 ? std::max<int64_t>(options.slots, options.parallel)
                           : options.parallel + 8;
}

class Engine::Worker {
 public:
  Worker(
      TargetModel& target,
      Drafter& drafter,
      std::shared_ptr<const Tokenizer> tokenizer,
      EngineOptions options,
      EngineObserver* observer
  );
  ~Worker();

  std::shared_ptr<ReplyStream> submit(EngineRequest request, std::function<void()> on_event);
  void cut_text(std::vector<TokenId> text, int64_t length);
  void drain();
  bool idle() const;
  void cancel_all();
  void forget_texts();
  EngineStatus status() const;
  int max_drafts() const { return drafter_.max_drafts(); }
  const EngineOptions& options() const { return options_; }

 private:
  using Jobs = std::list<std::unique_ptr<Job>>;

  void loop();
  bool work();

  // What happens between two steps:
  void reap();
  void cut();
  void admit();
  bool worth_waiting(const Job& job) const;
  bool fits(const Job& job) const;
  bool fits_beside(const Job& job, int least_priority) const;
  bool make_way(const Job& job);
  int64_t positions(const Job& job) const;
  int64_t most_bytes(const Job& job) const { return pool_.bytes_at(positions(job)); }
  bool room_to_wait() const;
  void start(Job& job, SlotPool::Lease lease);
  void suspend(Job& job);
  void finish(Job& job, FinishReason reason);
  void fail(Job& job, const Error& error);
  void retire(Job& job);
  void release(Slot& slot);
  void keep_beginnings(Job& job);

  // A step:
  std::vector<Job*> plan();
  void plan_drafts(const std::vector<Job*>& decoding, int64_t prompt_rows);
  void step(const std::vector<Job*>& batch);
  void end_late_thoughts(const std::vector<Job*>& batch);
  void make_room(const std::vector<Job*>& batch);
  void publish(Job& job, const SequenceStep& step, const StepTimes& times);
  void observe(const std::vector<Job*>& batch, const StepReport& report);
  void tell(const std::vector<Job*>& batch, const StepReport& report);
  void update_status();
  EngineStatus costs() const;

  TargetModel& target_;
  Drafter& drafter_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  EngineOptions options_;
  EngineObserver* observer_;
  Cycle cycle_;
  SlotPool pool_;
  std::optional<BlockPolicy> habits_;
  ReplyContext context_;
  CompanyPolicy company_;
  bool planned_ = false;  // company_ decides about every draft of the step
  bool drafted_ = false;
  double step_ms_ = 0.0;  // what steps with words took of late, slow ones above all

  Jobs running_;  // of the worker alone

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  Jobs queue_;
  std::vector<std::pair<std::vector<TokenId>, int64_t>> cuts_;  // texts and how much of them stays
  bool draining_ = false;
  bool forgetting_ = false;
  bool stopping_ = false;
  int64_t in_the_making_ = 0;  // running_.size(), for others
  std::vector<std::weak_ptr<ReplyStream>> streams_;
  EngineStatus status_;

  std::thread thread_;  // last: it uses all the others
};

}  // namespace octet
