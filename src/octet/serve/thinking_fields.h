// How much a request lets the model think, from the many fields that other servers have for it. Not
// for what becomes of it (generation_request.h). Invariant: fields that contradict each other are
// refused by name; whatever is given here is honoured.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "octet/serve/request_fields.h"

namespace octet::serve {

/// Under which a request, or its chat_template_kwargs, may give a thinking budget.
inline constexpr auto kThinkingBudgetNames = std::to_array<const char*>(
    {"thinking_token_budget",
     "thinking_budget_tokens",
     "reasoning_budget_tokens",
     "thinking_budget",
     "reasoning_budget"}
);
/// Other fields of a request that say whether or how much to think.
inline constexpr auto kThinkingWishNames = std::to_array<const char*>(
    {"thinking", "enable_thinking", "reasoning", "reasoning_effort", "chat_template_kwargs"}
);

/// A hard limit in tokens, in any spelling, as read from the fields and `arguments` (those of
/// chat_template_kwargs, or null). -1 means none. Throws ApiError.
std::optional<int64_t> read_thinking_budget(RequestFields& fields, RequestFields* arguments);

struct ThinkingWish {
  std::optional<int64_t> budget;  // 0: no thoughts
  std::optional<bool> enabled;    // by a switch, else by what else was said; not given: nothing was
};
/// The budget, efforts (a budget in tokens wins) and switches of a chat. Throws ApiError.
ThinkingWish read_thinking_wish(RequestFields& fields, RequestFields* arguments);

}  // namespace octet::serve
