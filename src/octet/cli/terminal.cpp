#include "octet/cli/terminal.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <fmt/format.h>

namespace octet::cli {
namespace {

constexpr std::string_view kReset = "\x1b[0m";
constexpr std::string_view kDraftColor = "\x1b[32m";      // green: came for free
constexpr std::string_view kThinkingStyle = "\x1b[2m";    // dim
constexpr std::string_view kDraftOpen = "\xE2\x80\xB9";   // U+2039
constexpr std::string_view kDraftClose = "\xE2\x80\xBA";  // U+203A

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  constexpr std::array<std::string_view, 4> kUnits = {"B", "kB", "MB", "GB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000.0 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  return fmt::format(
      "{:.{}f} {}",
      value,
      unit == 0 || value >= 100.0 ? 0
      : value >= 10.0             ? 1
                                  : 2,
      kUnits.at(unit)
  );
}

bool wants_color(int descriptor) {
  const char* no_color =
      std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): nobody sets variables
  return isatty(descriptor) == 1 && (no_color == nullptr || *no_color == '\0');
}

TextStream::TextStream(Marks marks) : marks_(marks) {
  if (marks_ == Marks::kAuto) {
    marks_ = wants_color(STDOUT_FILENO) ? Marks::kColor : Marks::kOff;
  }
}

void TextStream::write(std::string_view text, Origin origin, Part part) {
  if (text.empty()) {
    return;
  }
  if (origin != origin_ || part != part_) {
    change_style(origin, part);
  }
  put(text);
  line_open_ = text.back() != '\n';
  std::fflush(stdout);
}

void TextStream::fresh_line() {
  if (line_open_) {
    put("\n");
    line_open_ = false;
  }
}

void TextStream::change_style(Origin origin, Part part) {
  if (marks_ == Marks::kColor) {
    put(kReset);
    if (part == Part::kThinking) {
      put(kThinkingStyle);
    }
    if (origin == Origin::kDraft) {
      put(kDraftColor);
    }
    styled_ = true;
  } else if (marks_ == Marks::kText && origin != origin_) {
    put(origin == Origin::kDraft ? kDraftOpen : kDraftClose);
  }
  origin_ = origin;
  part_ = part;
}

void TextStream::end() {
  if (marks_ == Marks::kText && origin_ == Origin::kDraft) {
    put(kDraftClose);
  }
  if (styled_) {
    put(kReset);
  }
  fresh_line();
  std::fflush(stdout);
  origin_ = Origin::kTarget;
  part_ = Part::kSpeech;
  styled_ = false;
}

std::string TextStream::legend() const {
  switch (marks_) {
    case Marks::kColor:
      return fmt::format(
          "{}green{}: drafted and accepted; plain: the target's own", kDraftColor, kReset
      );
    case Marks::kText:
      return fmt::format(
          "{}...{}: drafted and accepted; the rest: the target's own", kDraftOpen, kDraftClose
      );
    default:
      return {};
  }
}

Progress::Progress(bool enabled, std::chrono::seconds line_every)
    : enabled_(enabled),
      overwrites_(isatty(STDERR_FILENO) == 1),
      line_every_(line_every),
      last_line_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  clear();
}

void Progress::show(std::string_view text) {
  if (!enabled_) {
    return;
  }
  if (overwrites_) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
    shown_ = true;
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (line_every_.count() > 0 && now - last_line_ >= line_every_) {
    fmt::print(stderr, "{}\n", text);
    last_line_ = now;
  }
}

void Progress::clear() {
  if (shown_) {
    fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
    shown_ = false;
  }
}

}  // namespace octet::cli
