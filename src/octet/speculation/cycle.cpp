#include "octet/speculation/cycle.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"

namespace octet {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point& mark) {
  const Clock::time_point now = Clock::now();
  const double ms = std::chrono::duration<double, std::milli>(now - mark).count();
  mark = now;
  return ms;
}

/// Tokens that the sequence may still publish.
int64_t remaining(const Sequence& sequence) {
  return std::min(
      sequence.max_tokens - sequence.reply_length(), sequence.context_length - sequence.length()
  );
}

int wanted_drafts(const Sequence& sequence) {
  if (sequence.planned_drafts >= 0) {
    return sequence.planned_drafts;
  }
  return sequence.policy != nullptr ? sequence.policy->next_drafts() : kMaxDrafts;
}

/// Where the sequence's next chunk of unprocessed text ends.
int64_t chunk_end(const Sequence& sequence, int64_t max_rows) {
  const int64_t begin = sequence.cache->length();
  const int64_t rows = std::clamp<int64_t>(sequence.chunk_rows, 1, max_rows);
  int64_t end = std::min(sequence.length(), begin + rows);
  for (const int64_t mark : sequence.marks) {
    end = mark > begin ? std::min(end, mark) : end;
  }
  return end;
}

/// The place that a chunk ending at `end` leads to: what will be read next of its features.
int64_t next_goal(const Sequence& sequence, int64_t end) {
  for (const int64_t mark : sequence.marks) {
    if (mark >= end) {
      return mark;
    }
  }
  return sequence.length();
}

/// So many rows before a draft its drafter is to know the features of.
int64_t feature_window(const Sequence& sequence, const Drafter& drafter) {
  if (drafter.taps().empty() || !sequence.feed_drafter) {
    return 0;
  }
  const bool by_policy = sequence.policy != nullptr && sequence.planned_drafts < 0;
  const int64_t wanted =
      by_policy ? sequence.policy->features_wanted() : std::numeric_limits<int64_t>::max();
  return std::min(wanted, drafter.feature_window());
}

}  // namespace

/// One sequence's step as it takes shape; each stage fills its part.
struct Cycle::Plan {
  explicit Plan(Sequence& s) : sequence(s) {}

  Sequence& sequence;
  Proposal proposal;           // propose
  int forced = 0;              //   drafts that are no guess: their constraint leaves nothing else
  int proposed = 0;            //   drafts before the policy cut them
  std::vector<TokenId> block;  // assemble: unprocessed text (the anchor when decoding), then drafts
  int64_t logits_rows = 0;     //   drafts + 1; 0 for a chunk that ends before the prompt does
  int64_t feature_rows = 0;    //   the last so many rows
  int64_t first_logits = 0;    // forward: where this sequence's results start
  int64_t first_features = 0;
  Verdict verdict;  // verify
  License licence;  // license
};

Cycle::Cycle(TargetModel& target, Drafter& drafter) : target_(target), drafter_(drafter) {
  for (const int tap : drafter.taps()) {
    if (tap < 0 || tap >= target.shape().layers) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "the drafter reads target layer {}, but the target has layers 0 to {}: they are not "
              "a "
              "pair",
              tap,
              target.shape().layers - 1
          )
      );
    }
  }
}

StepReport Cycle::step(std::span<Sequence* const> sequences) {
  std::vector<Plan> plans;
  plans.reserve(sequences.size());
  for (Sequence* sequence : sequences) {
    OCTET_CHECK(sequence->finish == FinishReason::kNone);
    OCTET_CHECK(sequence->unprocessed() >= 1 && remaining(*sequence) >= 1);
    plans.emplace_back(*sequence);
  }

  StepReport report;
  Clock::time_point mark = Clock::now();
  propose(plans);
  report.times.draft_ms = ms_since(mark);
  assemble(plans);
  forward(plans);
  report.times.forward_ms = ms_since(mark);
  judge(plans);
  report.times.verify_ms = ms_since(mark);
  for (Plan& plan : plans) {
    report.sequences.push_back(commit(plan));
  }
  report.times.commit_ms = ms_since(mark);
  record_costs(report);
  return report;
}

/// Only a step of one decoding sequence tells what its rows cost.
void Cycle::record_costs(const StepReport& report) {
  if (report.sequences.size() != 1 || report.sequences.front().prompt) {
    drafted_before_ = false;
    return;
  }
  const SequenceStep& step = report.sequences.front();
  const StepTimes& times = report.times;
  costs_.observe_forward(
      static_cast<int>(step.rows), times.forward_ms + times.verify_ms + times.commit_ms
  );
  if (step.proposed > 0 && drafted_before_) {
    costs_.observe_draft(times.draft_ms);
  } else if (step.proposed > 0) {
    costs_.observe_look(times.draft_ms);
  }
  drafted_before_ = step.proposed > 0;
}

void Cycle::propose(std::span<Plan> plans) {
  std::vector<DraftTask> tasks;
  for (Plan& plan : plans) {
    const Sequence& sequence = plan.sequence;
    if (sequence.unprocessed() > 1 || sequence.draft_max == 0) {
      continue;
    }
    // The target adds a token of its own, so one less than what may still come.
    const int64_t room =
        std::min({int64_t{kMaxDrafts}, target_.max_rows() - 1, remaining(sequence) - 1});
    if (sequence.constraint != nullptr && room > 0) {
      sequence.constraint->forced(room, plan.proposal.tokens);
      plan.forced = static_cast<int>(std::ssize(plan.proposal.tokens));
    }
    if (plan.forced > 0) {
      continue;  // what is certain needs no drafter
    }
    const int64_t count =
        std::min<int64_t>({wanted_drafts(sequence), sequence.draft_max, drafter_.max_drafts(), room}
        );
    if (count > 0) {
      tasks.push_back(
          {sequence.draft_state.get(),
           sequence.tokens,
           static_cast<int>(count),
           sequence.sampler.get(),
           &sequence.penalties,
           &sequence.draft_choices,
           sequence.rule,
           &plan.proposal,
           sequence.policy != nullptr}
      );
    }
  }
  if (!tasks.empty()) {
    drafter_.propose(tasks);
  }
  for (const DraftTask& task : tasks) {
    OCTET_CHECK(std::ssize(task.out->tokens) <= task.count);
  }
  cut_proposals(plans);
}

/// What of the proposals is verified.
void Cycle::cut_proposals(std::span<Plan> plans) {
  for (Plan& plan : plans) {
    cut_after_end(plan.proposal, plan.sequence.stop_tokens);
    plan.forced = std::min(plan.forced, static_cast<int>(std::ssize(plan.proposal.tokens)));
    if (plan.forced > 0 || plan.sequence.planned_drafts >= 0) {
      plan.proposed = plan.forced > 0 ? 0 : static_cast<int>(plan.proposal.tokens.size());
      continue;  // certain, or planned with the company in view
    }
    plan.proposed = static_cast<int>(plan.proposal.tokens.size());
    if (plan.sequence.policy != nullptr && plan.proposed > 0) {
      const Proposal& made = plan.proposal;
      plan.proposal.truncate(plan.sequence.policy->keep(made.tokens, made.confidence));
    }
  }
}

void Cycle::assemble(std::span<Plan> plans) {
  for (Plan& plan : plans) {
    const Sequence& sequence = plan.sequence;
    const int64_t begin = sequence.cache->length();
    const int64_t end = chunk_end(sequence, target_.max_rows());
    const bool whole = end == sequence.length();  // up to the anchor: a token can be chosen
    plan.block.assign(sequence.tokens.begin() + begin, sequence.tokens.begin() + end);
    plan.block.insert(plan.block.end(), plan.proposal.tokens.begin(), plan.proposal.tokens.end());
    plan.logits_rows = whole ? std::ssize(plan.proposal.tokens) + 1 : 0;
    if (const int64_t window = feature_window(sequence, drafter_); window > 0) {
      // Of a prompt only the rows that a draft at its end, or at a mark or shortly before, can see.
      const int64_t slack = sequence.marks.empty() ? 0 : kMarkSlack;
      const int64_t first_useful = std::max(begin, next_goal(sequence, end) - window - slack);
      plan.feature_rows = std::max<int64_t>(0, begin + std::ssize(plan.block) - first_useful);
    }
  }
}

void Cycle::forward(std::span<Plan> plans) {
  std::vector<SequenceRows> batch;
  int64_t logits = 0;
  int64_t features = 0;
  bool tapped = false;
  for (Plan& plan : plans) {
    const Sequence& sequence = plan.sequence;
    const bool raw = sequence.sampler->reads_order_alone() && sequence.scores < 0;
    batch.push_back({sequence.cache.get(), plan.block, plan.logits_rows, plan.feature_rows, raw});
    plan.first_logits = std::exchange(logits, logits + plan.logits_rows);
    plan.first_features = std::exchange(features, features + plan.feature_rows);
    tapped = tapped || plan.feature_rows > 0;
  }
  target_.forward(batch, tapped ? drafter_.taps() : std::span<const int>(), rows_);
  OCTET_CHECK(rows_.logits.rows == logits && rows_.features.rows == features);
}

void Cycle::judge(std::span<Plan> plans) {
  for (Plan& plan : plans) {
    const Sequence& sequence = plan.sequence;
    if (plan.logits_rows > 0) {
      plan.verdict = verify(
          plan.proposal,
          rows_.logits.slice(plan.first_logits, plan.logits_rows),
          {*sequence.sampler,
           sequence.penalties,
           sequence.rule,
           sequence.length(),
           sequence.constraint,
           sequence.scores}
      );
    }
    const Limits limits = {
        sequence.stop_tokens,
        sequence.max_tokens - sequence.reply_length(),
        sequence.context_length - sequence.length(),
        sequence.cancelled};
    plan.licence = license(plan.verdict.tokens, limits, sequence.stop_watch);
    if (sequence.constraint != nullptr) {
      sequence.constraint->roll_back(std::ssize(plan.verdict.tokens) - plan.licence.published);
    }
  }
}

SequenceStep Cycle::commit(Plan& plan) {
  Sequence& sequence = plan.sequence;
  SequenceCache& cache = *sequence.cache;
  const auto rows = std::ssize(plan.block);
  const int64_t begin = cache.length() - rows;

  // Rows stay whose tokens are in the text: the anchor and the published drafts. The last published
  // token has none yet.
  if (plan.logits_rows > 0) {
    cache.truncate(sequence.length() - 1 + plan.licence.published);
  }
  if (plan.feature_rows > 0) {
    const int64_t first = begin + rows - plan.feature_rows;
    const int64_t kept = std::max<int64_t>(0, cache.length() - first);
    drafter_.observe(*sequence.draft_state, first, rows_.features.slice(plan.first_features, kept));
  }
  const SequenceStep step = {
      rows,
      rows - plan.proposal.tokens.size() > 1 || plan.logits_rows == 0,
      static_cast<int>(plan.proposal.tokens.size()),
      plan.verdict.accepted,
      plan.licence.published,
      plan.licence.finish,
      plan.forced,
      plan.proposed};
  for (int i = 0; i < plan.licence.published; ++i) {
    const TokenId token = plan.verdict.tokens[static_cast<size_t>(i)];
    sequence.tokens.push_back(token);
    sequence.penalties.push(token);
  }
  if (sequence.scores >= 0) {
    plan.verdict.scores.resize(static_cast<size_t>(plan.licence.published));
    sequence.published_scores = std::move(plan.verdict.scores);
  }
  sequence.finish = plan.licence.finish;
  if (sequence.policy != nullptr) {
    const auto added = static_cast<size_t>(plan.licence.published);
    step.prompt ? sequence.policy->abandon_look()
                : sequence.policy->published(std::span(plan.verdict.tokens).first(added));
  }
  if (sequence.policy != nullptr && step.drafted > step.forced) {
    const int judged = step.judged();
    sequence.policy->observe(step.drafted, std::min(step.accepted, judged), judged);
  }
  OCTET_CHECK(plan.logits_rows == 0 || sequence.unprocessed() == 1);
  return step;
}

}  // namespace octet
