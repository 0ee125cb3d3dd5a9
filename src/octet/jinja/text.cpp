#include "octet/jinja/text.h"

#include <algorithm>

#include "octet/base/utf8.h"

namespace octet::jinja {

Origin Text::origin(size_t at) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), at, [](size_t byte, const Run& r) {
    return byte < r.end;
  });
  return run == runs_.end() ? Origin::kTemplate : run->origin;
}

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) {
    return;
  }
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().origin == origin) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({.end = bytes_.size(), .origin = origin});
  }
}

void Text::append(const Text& text) {
  append(text, 0, text.size());
}

void Text::append(const Text& text, size_t begin, size_t end) {
  const auto first =
      std::upper_bound(text.runs_.begin(), text.runs_.end(), begin, [](size_t byte, const Run& r) {
        return byte < r.end;
      });
  for (auto run = first; run != text.runs_.end() && begin < end; ++run) {
    const size_t stop = std::min(run->end, end);
    append(text.view().substr(begin, stop - begin), run->origin);
    begin = stop;
  }
}

Text Text::cut(size_t begin, size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

ByteRange stripped(std::string_view text, Sides sides) {
  return stripped(text, sides, {});
}

ByteRange stripped(std::string_view text, Sides sides, std::string_view set) {
  const auto drop = [&](size_t at, const Utf8Step& step) {
    if (set.empty()) {
      return step.status == Utf8Status::kValid && is_space(step.code_point);
    }
    return set.find(text.substr(at, static_cast<size_t>(step.length))) != std::string_view::npos;
  };
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const size_t next = at + static_cast<size_t>(step.length);
    if (!drop(at, step)) {
      begin = std::min(begin, at);
      end = next;
    }
    at = next;
  }
  if ((static_cast<int>(sides) & static_cast<int>(Sides::kLeft)) == 0) {
    begin = 0;
  }
  if ((static_cast<int>(sides) & static_cast<int>(Sides::kRight)) == 0) {
    end = text.size();
  }
  return begin < end ? ByteRange{.begin = begin, .end = end} : ByteRange{};
}

std::vector<size_t> character_starts(std::string_view text) {
  std::vector<size_t> starts;
  starts.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size(); at += static_cast<size_t>(decode_utf8(text, at).length)) {
    starts.push_back(at);
  }
  starts.push_back(text.size());
  return starts;
}

}  // namespace octet::jinja
