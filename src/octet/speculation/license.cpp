#include "octet/speculation/license.h"

#include <algorithm>

namespace octet {

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "none";
    case FinishReason::kStopToken:
      return "stop_token";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContext:
      return "context";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kFailed:
      return "error";
  }
  return "none";
}

License license(std::span<const TokenId> tokens, const Limits& limits, StopWatch* watch) {
  if (limits.cancelled != nullptr && limits.cancelled->load(std::memory_order_relaxed)) {
    return {0, FinishReason::kCancelled};
  }
  License result;
  for (const TokenId token : tokens) {
    ++result.published;
    const bool end = std::find(limits.stop_tokens.begin(), limits.stop_tokens.end(), token) !=
                     limits.stop_tokens.end();
    const bool stopped = watch != nullptr && watch->push(token, end);
    if (end) {
      result.finish = FinishReason::kStopToken;
    } else if (stopped) {
      result.finish = FinishReason::kStopString;
    } else if (result.published >= limits.remaining_tokens) {
      result.finish = FinishReason::kLength;
    } else if (result.published >= limits.remaining_context) {
      result.finish = FinishReason::kContext;
    }
    if (result.finish != FinishReason::kNone) {
      break;
    }
  }
  return result;
}

}  // namespace octet
