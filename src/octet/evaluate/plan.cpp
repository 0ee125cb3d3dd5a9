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

double prefill_ms(const CycleCosts& costs, int64_t rows) {
  if (costs.prefill.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "the costs have no prefill, which a workload needs; measure them with `octet bench cycle` "
        "and --prompts"
    );
  }
  // Costs of a row at the nearest measured length.
  const PrefillCosts* nearest = &costs.prefill.front();
  for (const PrefillCosts& candidate : costs.prefill) {
    if (std::abs(candidate.rows - rows) < std::abs(nearest->rows - rows)) {
      nearest = &candidate;
    }
  }
  const double ms = nearest->ms * static_cast<double>(rows) / static_cast<double>(nearest->rows);
  const auto measured = static_cast<int64_t>(costs.contexts.front().forward_ms.size());
  return std::max(ms, base_forward_ms(costs, std::min(rows, measured)));
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
  const std::vector<PlannedLength> lengths = plan_drafts(costs, profile, {middle, 1});
  const PlannedLength& best = best_of(lengths);
  // A prompt's rows attend to the cache as well: what that adds to a row is what it adds to a pass
  // of many, shared by its rows.
  const ContextCosts first = costs_at(costs, workload.cached);
  const double rows = static_cast<double>(first.forward_ms.size());
  const double attention_ms =
      std::max(0.0, first.forward_ms.back() - costs.contexts.front().forward_ms.back()) / rows;
  PlannedWorkload planned;
  planned.first_token_ms =
      prefill_ms(costs, workload.prompt) + static_cast<double>(workload.prompt) * attention_ms;
  planned.plain_ms = planned.first_token_ms + (output - 1.0) * lengths.front().step_ms;
  planned.drafted_ms = planned.first_token_ms + (output - 1.0) / best.tokens * best.step_ms;
  planned.drafts = best.drafts;
  return planned;
}

}  // namespace octet
