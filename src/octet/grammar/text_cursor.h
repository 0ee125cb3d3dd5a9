// A place in a pattern's source: what the readers of regular expressions and EBNF share. Not for
// their syntax. Invariant: at_ <= text_.size().
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

class TextCursor {
 protected:
  explicit TextCursor(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }

  /// Whether `what` comes next; then it is behind.
  bool skip(std::string_view what) {
    const bool found = text_.substr(at_).starts_with(what);
    at_ += found ? what.size() : 0;
    return found;
  }

  /// A count of repetitions; nullopt when no digit comes next. `source` names the text in the
  /// Error(kResourceExhausted) for counts that no pattern needs.
  std::optional<int64_t> count(std::string_view source) {
    constexpr int64_t kMaxRepeat = 10'000;
    const size_t start = at_;
    int64_t value = 0;
    while (!done() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = std::min<int64_t>(value * 10 + (text_[at_++] - '0'), kMaxRepeat + 1);
    }
    if (value > kMaxRepeat) {
      throw Error(
          ErrorKind::kResourceExhausted,
          fmt::format("{}: more than {} repetitions", source, kMaxRepeat)
      );
    }
    return at_ == start ? std::nullopt : std::optional<int64_t>(value);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace octet
