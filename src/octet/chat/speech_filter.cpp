#include "octet/chat/speech_filter.h"

#include <utility>

namespace octet {

SpeechFilter::SpeechFilter(const std::vector<std::string>& stops)
    : strings_(stops.empty() ? nullptr : std::make_shared<const StopStrings>(stops)),
      matcher_(strings_) {}

std::string SpeechFilter::push(std::string text) {
  if (strings_ == nullptr) {
    return text;
  }
  held_ += text;
  matcher_.advance(text);
  const auto count = static_cast<size_t>(matcher_.publishable_bytes() - released_);
  std::string out = held_.substr(0, count);
  held_.erase(0, count);
  released_ += static_cast<int64_t>(count);
  return out;
}

std::string SpeechFilter::finish() {
  if (matcher_.matched()) {
    return {};
  }
  matcher_ = StopMatcher(strings_);
  released_ = 0;
  return std::exchange(held_, {});
}

}  // namespace octet
