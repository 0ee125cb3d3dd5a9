#include "octet/serve/thinking_fields.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"

namespace octet::serve {
namespace {

constexpr int64_t kMostBudget = int64_t{1} << 30;

/// A value that several fields may give, if they agree.
template <typename T>
class Agreed {
 public:
  explicit Agreed(std::string_view what) : what_(what) {}

  void take(const std::optional<T>& value, const std::string& name) {
    if (value && value_ && *value_ != *value) {
      throw ApiError(name, fmt::format("{} contradicts another {} of this request", name, what_));
    }
    value_ = value ? value : value_;
  }
  const std::optional<T>& value() const { return value_; }

 private:
  std::string_view what_;
  std::optional<T> value_;
};

struct Effort {
  std::string_view name;
  std::optional<int64_t> budget;
};

constexpr auto kEfforts = std::to_array<Effort>(
    {{"none", 0},
     {"minimal", 32},
     {"low", 128},
     {"medium", 512},
     {"high", std::nullopt},
     {"xhigh", std::nullopt}}
);

std::optional<int64_t> budget_of(const std::string& effort, const std::string& field) {
  const auto* known = std::ranges::find(kEfforts, effort, &Effort::name);
  if (known == kEfforts.end()) {
    throw ApiError(
        field, fmt::format("{} expects none, minimal, low, medium, high or xhigh", field)
    );
  }
  return known->budget;
}

/// Whether it asks for thoughts.
bool take_thinking(RequestFields& fields, Agreed<int64_t>& budget) {
  const Json* thinking = fields.find("thinking");
  if (thinking == nullptr) {
    return false;
  }
  if (!thinking->is_object()) {
    throw ApiError("thinking", "thinking expects an object {\"type\", \"budget_tokens\"}");
  }
  RequestFields own(*thinking, "thinking.");
  const auto type = own.text("type", 16).value_or("enabled");
  budget.take(own.integer("budget_tokens", -1, kMostBudget), "thinking.budget_tokens");
  own.refuse_unread(true);
  if (type != "enabled" && type != "adaptive" && type != "disabled") {
    throw ApiError(
        "thinking.type", "thinking.type expects \"enabled\", \"adaptive\" or \"disabled\""
    );
  }
  if (type == "disabled") {
    budget.take(0, "thinking.type");
  }
  return type != "disabled";
}

struct Budgets {
  Agreed<int64_t> budget{"thinking budget"};
  bool wanted = false;  // thoughts are asked for, however many
};

Budgets read_budgets(RequestFields& fields, RequestFields* arguments) {
  Budgets read;
  Agreed<int64_t>& budget = read.budget;
  for (const char* name : kThinkingBudgetNames) {
    budget.take(fields.integer(name, -1, kMostBudget), name);
    if (arguments != nullptr) {
      budget.take(arguments->integer(name, -1, kMostBudget), arguments->name_of(name));
    }
  }
  read.wanted = take_thinking(fields, budget);
  return read;
}

/// -1: no limit.
std::optional<int64_t> limit_of(const Agreed<int64_t>& budget) {
  return budget.value() == -1 ? std::nullopt : budget.value();
}

}  // namespace

std::optional<int64_t> read_thinking_budget(RequestFields& fields, RequestFields* arguments) {
  return limit_of(read_budgets(fields, arguments).budget);
}

ThinkingWish read_thinking_wish(RequestFields& fields, RequestFields* arguments) {
  auto [budget, wanted] = read_budgets(fields, arguments);
  Agreed<std::string> effort("effort");
  Agreed<bool> enabled("switch of thoughts");
  effort.take(fields.text("reasoning_effort", 32), "reasoning_effort");
  enabled.take(fields.boolean("enable_thinking"), "enable_thinking");
  if (arguments != nullptr) {
    effort.take(arguments->text("reasoning_effort", 32), arguments->name_of("reasoning_effort"));
    enabled.take(arguments->boolean("enable_thinking"), arguments->name_of("enable_thinking"));
  }
  if (const Json* reasoning = fields.find("reasoning")) {
    if (!reasoning->is_object()) {
      throw ApiError("reasoning", "reasoning expects an object {\"effort\", \"max_tokens\"}");
    }
    RequestFields own(*reasoning, "reasoning.");
    effort.take(own.text("effort", 32), "reasoning.effort");
    budget.take(own.integer("max_tokens", 0, kMostBudget), "reasoning.max_tokens");
    enabled.take(own.boolean("enabled"), "reasoning.enabled");
    own.refuse_unread(true);
  }
  std::optional<int64_t> by_effort;
  if (effort.value()) {
    by_effort = budget_of(*effort.value(), "reasoning_effort");
  }
  ThinkingWish wish = {budget.value() ? limit_of(budget) : by_effort, enabled.value()};
  wanted = wanted || budget.value() || effort.value();
  if (!wish.enabled && wanted) {
    wish.enabled = wish.budget != 0;
  }
  return wish;
}

}  // namespace octet::serve
