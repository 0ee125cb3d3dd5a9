#include "octet/evaluate/plan.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

constexpr int kBisections = 60;

double on_line(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

/// The costs at a context between or beyond the measured ones.
ContextCosts costs_at(const CycleCosts& costs, int64_t context) {
  const std::vector<ContextCosts>& all = costs.contexts;
  if (all.size() == 1) {
    ContextCosts only = all.front();
    only.context = context;
    return only;
  }
  size_t high = 1;
  while (high + 1 < all.size() && all[high].context < context) {
    ++high;
  }
  const ContextCosts& a = all[high - 1];
  const ContextCosts& b = all[high];
  const auto between = [&](double at_a, double at_b) {
    const double there = on_line(
        static_cast<double>(context),
        static_cast<double>(a.context),
        at_a,
        static_cast<double>(b.context),
        at_b
    );
    // No cost falls as the context grows: a line that does is noise.
    return context > b.context ? std::max(there, at_b) : context < a.context ? at_a : there;
  };
  ContextCosts result;
  result.context = context;
  for (size_t k = 0; k < a.forward_ms.size(); ++k) {
    result.forward_ms.push_back(between(a.forward_ms[k], b.forward_ms[k]));
  }
  result.draft_ms = between(a.draft_ms, b.draft_ms);
  result.inject_ms = between(a.inject_ms, b.inject_ms);
  return result;
}

/// A pass of any number of rows at the smallest context.
double base_forward_ms(const CycleCosts& costs, int64_t rows) {
  const std::vector<double>& measured = costs.contexts.front().forward_ms;
  const auto count = static_cast<int64_t>(measured.size());
  if (rows <= count) {
    return measured[static_cast<size_t>(rows - 1)];
  }
  // The upper half of the measured rows has the slope that rows have once weights cost less than
  // arithmetic; single differences are noise.
  const int64_t from = std::max<int64_t>(1, count / 2);
  return std::max(
      measured.back(),
      on_line(
          static_cast<double>(rows),
          static_cast<double>(from),
          measured[static_cast<size_t>(from - 1)],
          static_cast<double>(count),
          measured.back()
      )
  );
}

/// The measured prompt whose length is nearest. Throws Error(kInvalidArgument) where there is none.
const PrefillCosts& nearest_prefill(const CycleCosts& costs, int64_t rows) {
  if (costs.prefill.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "the costs have no prefill, which a workload needs; measure them with `octet bench cycle` "
        "and --prompts"
    );
  }
  const PrefillCosts* nearest = &costs.prefill.front();
  for (const PrefillCosts& candidate : costs.prefill) {
    if (std::abs(candidate.rows - rows) < std::abs(nearest->rows - rows)) {
      nearest = &candidate;
    }
  }
  return *nearest;
}

/// Costs of as many rows as at the nearest measured length, and in every row what attention to more
/// positions adds.
double prefill_ms(const CycleCosts& costs, int64_t cached, int64_t rows) {
  const PrefillCosts& nearest = nearest_prefill(costs, rows);
  const double ms = nearest.ms * static_cast<double>(rows) / static_cast<double>(nearest.rows);
  const std::vector<double>& base = costs.contexts.front().forward_ms;
  const auto measured = static_cast<int64_t>(base.size());
  const double alone = std::max(ms, base_forward_ms(costs, std::min(rows, measured)));
  // A row attends to the cache, and in the mean to half of its own prompt: of that the nearest
  // measured prompt had its own half. What this adds to a row is what it adds to a pass of many,
  // shared by its rows.
  const int64_t context = cached + std::max<int64_t>(0, rows - nearest.rows) / 2;
  const double more = costs_at(costs, context).forward_ms.back() - base.back();
  return alone + static_cast<double>(rows) * std::max(0.0, more) / static_cast<double>(measured);
}

}  // namespace

double tokens_per_step(const AcceptanceProfile& profile, int drafts) {
  double tokens = 1.0;
  double joint = 1.0;
  for (size_t k = 0; k < std::min(profile.size(), static_cast<size_t>(drafts)); ++k) {
    joint *= profile[k];
    tokens += joint;
  }
  return tokens;
}

AcceptanceProfile profile_of_length(double length, int drafts) {
  if (!(length >= 1.0 && length <= drafts + 1.0)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("an acceptance length of {:g} is none of 1 to {}", length, drafts + 1)
    );
  }
  double low = 0.0;
  double high = 1.0;
  AcceptanceProfile profile(static_cast<size_t>(drafts));
  for (int i = 0; i < kBisections; ++i) {
    const double middle = (low + high) / 2.0;
    std::fill(profile.begin(), profile.end(), middle);
    (tokens_per_step(profile, drafts) < length ? low : high) = middle;
  }
  std::fill(profile.begin(), profile.end(), high);
  return profile;
}

std::vector<PlannedLength> plan_drafts(
    const CycleCosts& costs, const AcceptanceProfile& profile, const PlanPlace& place
) {
  const ContextCosts here = costs_at(costs, place.context);
  const std::vector<double>& base = costs.contexts.front().forward_ms;
  const double conversations = place.conversations;
  const auto forward_ms = [&](int rows) {
    const auto k = static_cast<size_t>(rows - 1);
    return base_forward_ms(costs, int64_t{place.conversations} * rows) +
           conversations * (here.forward_ms[k] - base[k]);
  };
  const double plain_ms = forward_ms(1);
  const int64_t block = costs.block;
  const double drafts_ms = here.draft_ms * base_forward_ms(costs, block * place.conversations) /
                           base_forward_ms(costs, block);
  std::vector<PlannedLength> lengths;
  for (int drafts = 0; drafts <= costs.most_drafts(); ++drafts) {
    PlannedLength length;
    length.drafts = drafts;
    length.tokens = tokens_per_step(profile, drafts);
    length.step_ms = forward_ms(drafts + 1);
    if (drafts > 0) {
      length.step_ms += drafts_ms + conversations * length.tokens * here.inject_ms;
    }
    length.speedup = length.tokens * plain_ms / length.step_ms;
    length.needs = length.step_ms / plain_ms;
    lengths.push_back(length);
  }
  return lengths;
}

const PlannedLength& best_of(std::span<const PlannedLength> lengths) {
  return *std::max_element(
      lengths.begin(),
      lengths.end(),
      [](const PlannedLength& a, const PlannedLength& b) { return a.speedup < b.speedup; }
  );
}

PlannedWorkload plan_workload(
    const CycleCosts& costs, const AcceptanceProfile& profile, const Workload& workload
) {
  const auto output = static_cast<double>(workload.output);
  const int64_t middle = workload.cached + workload.prompt + workload.output / 2;
  const std::vector<PlannedLength> lengths =
      plan_drafts(costs, profile, {middle, workload.conversations});
  const PlannedLength& best = best_of(lengths);
  PlannedWorkload planned;
  planned.first_token_ms =
      workload.conversations * prefill_ms(costs, workload.cached, workload.prompt);
  planned.plain_ms = planned.first_token_ms + (output - 1.0) * lengths.front().step_ms;
  planned.drafted_ms = planned.first_token_ms + (output - 1.0) / best.tokens * best.step_ms;
  planned.drafts = best.drafts;
  return planned;
}

}  // namespace octet
