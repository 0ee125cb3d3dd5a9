// Decides how many tokens of a verdict may be published, and whether the text ends there, before
// anything is committed: end tokens, stop strings, token limit, end of context, cancellation. So
// nothing is ever taken back. Invariant: published <= verdict's tokens, and the stop watch has been
// shown exactly the published ones, in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "octet/base/token.h"

namespace octet {

enum class FinishReason : uint8_t {
  kNone,        // goes on
  kStopToken,   // an end token, published as the last token of the text
  kStopString,  // a stop string; the token that completed it is the last of the text
  kLength,      // max_tokens reached
  kContext,     // the context is full
  kCancelled,
  kDeadline,  // its time was over
  kFailed,    // an error ended it
};

/// "stop_token", "stop_string", ...; "none" while it goes on.
std::string_view finish_reason_name(FinishReason reason);

/// Watches the text that the published tokens spell. Implemented where text is known (engine/).
class StopWatch {
 public:
  virtual ~StopWatch() = default;
  /// The next published token; `end` marks an end token, which spells nothing. True: a stop string
  /// is complete.
  virtual bool push(TokenId token, bool end) = 0;
};

struct Limits {
  std::span<const TokenId> stop_tokens;
  int64_t remaining_tokens = 0;   // of max_tokens
  int64_t remaining_context = 0;  // positions that the context still has
  const std::atomic<bool>* cancelled = nullptr;
};

struct License {
  int published = 0;
  FinishReason finish = FinishReason::kNone;
};

/// Reasons in order of precedence at one token: end token, stop string, token limit, context end.
License license(std::span<const TokenId> tokens, const Limits& limits, StopWatch* watch);

}  // namespace octet
