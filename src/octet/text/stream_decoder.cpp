#include "octet/text/stream_decoder.h"

#include "octet/base/utf8.h"

namespace octet {

std::string StreamDecoder::push(std::string_view bytes) {
  held_.append(bytes);
  std::string text;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Step step = decode_utf8(held_, at);
    if (step.status == Utf8Status::kIncomplete) {
      break;
    }
    const auto length = static_cast<size_t>(step.length);
    text.append(
        step.status == Utf8Status::kValid ? std::string_view(held_).substr(at, length)
                                          : kReplacementUtf8
    );
    at += length;
  }
  held_.erase(0, at);
  return text;
}

std::string StreamDecoder::flush() {
  std::string text(held_.empty() ? std::string_view() : kReplacementUtf8);
  held_.clear();
  return text;
}

}  // namespace octet
