#include "octet/sampling/sampling_params.h"

#include <set>
#include <string_view>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

/// Allowed values of one number: [low, high], either end open where marked.
struct Range {
  double low = 0.0;
  double high = 0.0;
  bool low_open = false;
  bool high_open = false;
};

bool inside(const Range& range, double value) {
  const bool above = range.low_open ? value > range.low : value >= range.low;
  const bool below = range.high_open ? value < range.high : value <= range.high;
  return above && below;  // false for NaN
}

void require(std::string_view field, double value, const Range& range) {
  if (inside(range, value)) {
    return;
  }
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format(
          "{} is {}, expected a number in {}{}, {}{}",
          field,
          value,
          range.low_open ? '(' : '[',
          range.low,
          range.high,
          range.high_open ? ')' : ']'
      )
  );
}

void require_not_negative(std::string_view field, int64_t value) {
  if (value < 0) {
    throw Error(
        ErrorKind::kInvalidArgument, fmt::format("{} is {}, expected 0 or more", field, value)
    );
  }
}

void check_biases(const std::vector<TokenBias>& biases, int64_t vocabulary) {
  if (static_cast<int64_t>(biases.size()) > kMaxLogitBiases) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "logit_bias has {} entries, expected at most {}", biases.size(), kMaxLogitBiases
        )
    );
  }
  std::set<TokenId> banned;
  for (const TokenBias& entry : biases) {
    if (entry.token < 0 || entry.token >= vocabulary) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "logit_bias names token {}, expected an id in [0, {})", entry.token, vocabulary
          )
      );
    }
    require("logit_bias", static_cast<double>(entry.bias), {-100.0, 100.0});
    if (entry.bias <= kBanBias) {
      banned.insert(entry.token);
    }
  }
  if (static_cast<int64_t>(banned.size()) >= vocabulary) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "logit_bias forbids every token of the vocabulary, expected at least one to remain"
    );
  }
}

}  // namespace

void SamplingParams::validate(int64_t vocabulary) const {
  require("temperature", static_cast<double>(temperature), {0.0, 100.0});
  require_not_negative("top_k", top_k);
  require("top_p", static_cast<double>(top_p), {0.0, 1.0, true, false});
  require("min_p", static_cast<double>(min_p), {0.0, 1.0, false, true});
  require("repetition_penalty", static_cast<double>(repetition_penalty), {0.0, 10.0, true, false});
  require("presence_penalty", static_cast<double>(presence_penalty), {-10.0, 10.0});
  require("frequency_penalty", static_cast<double>(frequency_penalty), {-10.0, 10.0});
  require_not_negative("penalty_last_n", penalty_last_n);
  check_biases(logit_bias, vocabulary);
}

}  // namespace octet
