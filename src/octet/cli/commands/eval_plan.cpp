#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/json_writer.h"
#include "octet/evaluate/plan.h"
#include "octet/formats/json_value.h"

namespace octet::cli {
namespace {

constexpr int64_t kThousand = 1000;  // "32K" of the published shapes
constexpr int64_t kMostRows = 4096;  // of a measured pass that is no prompt; blocks have up to 16

struct NamedWorkload {
  std::string name;
  Workload workload;
};

const NamedWorkload kPublished[] = {
    {"0/3K/50", {0, 3 * kThousand, 50}},
    {"32K/2K/256", {32 * kThousand, 2 * kThousand, 256}},
    {"0/30/512", {0, 30, 512}},
    {"0/1K/512", {0, kThousand, 512}},
    {"0/4K/512", {0, 4 * kThousand, 512}},
    {"0/16K/512", {0, 16 * kThousand, 512}},
};

/// "3K" or "50"; -1 for anything else.
int64_t count_of(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || value < 0 || value > 1'000'000'000) {
    return -1;
  }
  return rest.empty() ? value : rest == "K" || rest == "k" ? value * kThousand : -1;
}

NamedWorkload workload_of(const std::string& text) {
  const size_t first = text.find('/');
  const size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  if (second != std::string::npos) {
    const std::string_view view = text;
    const Workload workload = {
        count_of(view.substr(0, first)),
        count_of(view.substr(first + 1, second - first - 1)),
        count_of(view.substr(second + 1))};
    if (workload.cached >= 0 && workload.prompt >= 1 && workload.output >= 1) {
      return {text, workload};
    }
  }
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format("--workload expects CACHED/PROMPT/OUTPUT, 32K/2K/256 say, not '{}'", text)
  );
}

/// Each with each number of conversations.
std::vector<NamedWorkload> workloads_of(const EvalPlanArguments& arguments) {
  std::vector<NamedWorkload> shapes;
  for (const std::string& text : arguments.workloads) {
    if (text == "published") {
      shapes.insert(shapes.end(), std::begin(kPublished), std::end(kPublished));
    } else {
      shapes.push_back(workload_of(text));
    }
  }
  std::vector<NamedWorkload> workloads;
  workloads.reserve(shapes.size() * arguments.conversations.size());
  for (const NamedWorkload& shape : shapes) {
    for (const int conversations : arguments.conversations) {
      workloads.push_back(shape);
      workloads.back().workload.conversations = conversations;
    }
  }
  return workloads;
}

/// Finds or adds the costs of a context.
ContextCosts& at_context(CycleCosts& costs, int64_t context) {
  for (ContextCosts& known : costs.contexts) {
    if (known.context == context) {
      return known;
    }
  }
  costs.contexts.push_back({context, {}, 0.0, 0.0});
  return costs.contexts.back();
}

/// Whoever stores costs by rows needs room for all below them. Throws Error(kMalformed).
void require_rows_of_a_block(const std::string& name, int64_t context, int64_t rows) {
  const bool known = name.starts_with("C_") || name.starts_with("inject");
  if (known && rows > kMostRows) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{} at context {} has {} rows, expected 1 to {}; write the costs with `octet bench "
            "cycle --json`",
            name,
            context,
            rows,
            kMostRows
        )
    );
  }
}

void take_row(CycleCosts& costs, const JsonValue& row) {
  const std::string name = row.find_string("name") != nullptr ? *row.find_string("name") : "";
  const int64_t context = row.find_integer("context").value_or(-1);
  const int64_t rows = row.find_integer("rows").value_or(0);
  const double ms = row.find_number("median_ms").value_or(0.0);
  if (context < 0 || rows < 1 || !(ms > 0.0)) {
    return;
  }
  require_rows_of_a_block(name, context, rows);
  if (name == "prefill") {
    costs.prefill.push_back({rows, ms});
  } else if (name == "C_d") {
    at_context(costs, context).draft_ms = ms;
    costs.block = static_cast<int>(rows);
  } else if (name.starts_with("inject")) {
    at_context(costs, context).inject_ms = ms / static_cast<double>(rows);
  } else if (name == "C_t" || name.starts_with("C_v")) {
    std::vector<double>& forward = at_context(costs, context).forward_ms;
    forward.resize(std::max(forward.size(), static_cast<size_t>(rows)), 0.0);
    forward[static_cast<size_t>(rows - 1)] = ms;
  }
}

bool is_complete(const ContextCosts& costs, size_t rows) {
  return rows >= 2 && costs.forward_ms.size() == rows && costs.draft_ms > 0.0 &&
         std::all_of(costs.forward_ms.begin(), costs.forward_ms.end(), [](double ms) {
           return ms > 0.0;
         });
}

/// The array of that name; an empty one where there is none.
const JsonArray& array_in(const JsonValue& object, std::string_view name) {
  static const JsonArray none;
  const JsonArray* array = object.find_array(name);
  return array != nullptr ? *array : none;
}

CycleCosts read_costs(const std::string& path) {
  const JsonValue document = read_json_object(path);
  CycleCosts costs;
  try {
    for (const JsonValue& row : array_in(document, "rows")) {
      take_row(costs, row);
    }
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
  std::sort(costs.contexts.begin(), costs.contexts.end(), [](const auto& a, const auto& b) {
    return a.context < b.context;
  });
  const size_t most = costs.contexts.empty() ? 0 : costs.contexts.front().forward_ms.size();
  const bool complete =
      std::all_of(costs.contexts.begin(), costs.contexts.end(), [&](const auto& context) {
        return is_complete(context, most);
      });
  if (costs.contexts.empty() || !complete || costs.block < 2) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{} does not hold C_t, C_v(2) and more, and C_d at a context; write it with `octet "
            "bench cycle -m TARGET -md DRAFTER --json`",
            path
        )
    );
  }
  return costs;
}

/// The arm with the most drafts of a result of `octet eval`.
AcceptanceProfile profile_of_result(const std::string& path) {
  const JsonValue document = read_json_object(path);
  const JsonArray* best = nullptr;
  for (const JsonValue& arm : array_in(document, "arms")) {
    const JsonValue* acceptance = arm.find("acceptance");
    const bool adaptive = arm.find_boolean("adaptive").value_or(false);
    if (acceptance != nullptr && !adaptive) {
      const JsonArray& joint = array_in(*acceptance, "by_position");
      best = best == nullptr || joint.size() > best->size() ? &joint : best;
    }
  }
  if (best == nullptr || best->empty()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{} has no arm with a fixed number of drafts; write it with `octet eval --drafts 0 max "
            "--json-file FILE`",
            path
        )
    );
  }
  AcceptanceProfile profile;
  double before = 1.0;
  for (const JsonValue& value : *best) {
    const double joint = value.number().value_or(0.0);
    profile.push_back(before > 0.0 ? std::clamp(joint / before, 0.0, 1.0) : 0.0);
    before = joint;
  }
  return profile;
}

AcceptanceProfile profile_of(const EvalPlanArguments& arguments, int drafts) {
  if (arguments.length) {
    return profile_of_length(*arguments.length, drafts);
  }
  AcceptanceProfile profile = arguments.acceptance_file.empty()
                                  ? AcceptanceProfile(arguments.probabilities)
                                  : profile_of_result(arguments.acceptance_file);
  profile.resize(static_cast<size_t>(drafts), profile.back());
  return profile;
}

struct PlannedPlace {
  PlanPlace place;
  std::vector<PlannedLength> lengths;

  const PlannedLength& best() const { return best_of(lengths); }
};

std::string place_text(const PlanPlace& place) {
  return fmt::format("{:>8}  {:>8}", place.context, place.conversations);
}

void print_places(const std::vector<PlannedPlace>& places) {
  fmt::print("\nSpeed against plain decoding, by the number of drafts:\n context  together");
  for (const PlannedLength& length : places.front().lengths) {
    fmt::print("  {:>5}", length.drafts);
  }
  fmt::print("   best: needs, has   tokens/s of each (plain)\n");
  for (const PlannedPlace& planned : places) {
    fmt::print("{}", place_text(planned.place));
    for (const PlannedLength& length : planned.lengths) {
      fmt::print("  {:>5.2f}", length.speedup);
    }
    const PlannedLength& best = planned.best();
    fmt::print(
        "   {:>4}: {:>5.2f}, {:<5.2f} {:>6.1f} ({:.1f})\n",
        best.drafts,
        best.needs,
        best.tokens,
        1000.0 * best.tokens / best.step_ms,
        1000.0 / planned.lengths.front().step_ms
    );
  }
}

/// When drafting should be off.
void print_advice(const std::vector<PlannedPlace>& places) {
  std::vector<std::string> off;
  for (const PlannedPlace& planned : places) {
    if (planned.best().drafts == 0) {
      off.push_back(
          fmt::format("{} at context {}", planned.place.conversations, planned.place.context)
      );
    }
  }
  if (off.empty()) {
    fmt::print("\nDrafting pays everywhere here.\n");
  } else if (off.size() == places.size()) {
    fmt::print("\nDrafting pays nowhere here: turn it off (--draft-max 0).\n");
  } else {
    fmt::print(
        "\nDrafting does not pay with as many conversations together: {}. The adaptive policy "
        "finds "
        "that out by itself.\n",
        fmt::join(off, "; ")
    );
  }
}

void print_workloads(
    const std::vector<NamedWorkload>& workloads, const std::vector<PlannedWorkload>& planned
) {
  if (workloads.empty()) {
    return;
  }
  fmt::print(
      "\n{:>14}  {:>8}  {:>12}  {:>9}  {:>9}  {:>7}  {:>6}\n",
      "workload",
      "together",
      "first token",
      "plain",
      "drafted",
      "speedup",
      "drafts"
  );
  for (size_t i = 0; i < workloads.size(); ++i) {
    const PlannedWorkload& plan = planned[i];
    fmt::print(
        "{:>14}  {:>8}  {:>10.2f} s  {:>7.2f} s  {:>7.2f} s  {:>7.2f}  {:>6}\n",
        workloads[i].name,
        workloads[i].workload.conversations,
        plan.first_token_ms / 1000.0,
        plan.plain_ms / 1000.0,
        plan.drafted_ms / 1000.0,
        plan.plain_ms / plan.drafted_ms,
        plan.drafts
    );
  }
}

std::string plan_json(
    const AcceptanceProfile& profile,
    const std::vector<PlannedPlace>& places,
    const std::vector<NamedWorkload>& workloads,
    const std::vector<PlannedWorkload>& planned
) {
  JsonWriter json;
  json.begin_object().key("probabilities").begin_array();
  for (const double probability : profile) {
    json.value(probability);
  }
  json.end_array().key("places").begin_array();
  for (const PlannedPlace& entry : places) {
    json.begin_object().member("context", entry.place.context);
    json.member("conversations", entry.place.conversations);
    json.member("best_drafts", entry.best().drafts).key("lengths").begin_array();
    for (const PlannedLength& length : entry.lengths) {
      json.begin_object().member("drafts", length.drafts);
      json.member("tokens_per_step", length.tokens).member("step_ms", length.step_ms);
      json.member("speedup", length.speedup).member("needs", length.needs).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("workloads").begin_array();
  for (size_t i = 0; i < workloads.size(); ++i) {
    json.begin_object().member("name", workloads[i].name);
    json.member("conversations", workloads[i].workload.conversations);
    json.member("first_token_ms", planned[i].first_token_ms);
    json.member("plain_ms", planned[i].plain_ms).member("drafted_ms", planned[i].drafted_ms);
    json.member("drafts", planned[i].drafts).end_object();
  }
  json.end_array().end_object();
  return json.text();
}

}  // namespace

int eval_plan(const EvalPlanArguments& arguments) {
  const std::vector<NamedWorkload> workloads = workloads_of(arguments);
  const CycleCosts costs = read_costs(arguments.costs_file);
  const AcceptanceProfile profile = profile_of(arguments, costs.block - 1);
  std::vector<int64_t> contexts = arguments.contexts;
  if (contexts.empty()) {
    contexts.reserve(costs.contexts.size());
    for (const ContextCosts& measured : costs.contexts) {
      contexts.push_back(measured.context);
    }
  }
  std::vector<PlannedPlace> places;
  places.reserve(contexts.size() * arguments.conversations.size());
  for (const int64_t context : contexts) {
    for (const int conversations : arguments.conversations) {
      const PlanPlace place{context, conversations};
      places.push_back({place, plan_drafts(costs, profile, place)});
    }
  }
  std::vector<PlannedWorkload> planned;
  planned.reserve(workloads.size());
  for (const NamedWorkload& workload : workloads) {
    planned.push_back(plan_workload(costs, profile, workload.workload));
  }
  if (arguments.json) {
    fmt::print("{}\n", plan_json(profile, places, workloads, planned));
    return 0;
  }
  fmt::print(
      "Predicted from the costs in {}\nprobability of each draft: {:.2f}; {:.2f} tokens a step "
      "with "
      "all {}\n",
      arguments.costs_file,
      fmt::join(profile, " "),
      tokens_per_step(profile, costs.most_drafts()),
      costs.most_drafts()
  );
  print_places(places);
  print_advice(places);
  print_workloads(workloads, planned);
  return 0;
}

}  // namespace octet::cli
