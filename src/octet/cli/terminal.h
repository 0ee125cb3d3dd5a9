// What people see: streamed text with drafted tokens told from the target's own, and progress of
// long loads. Text goes to standard output, everything else to standard error, so a pipe gets the
// text alone. Invariant: without colour or marks the bytes written are exactly the text.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "octet/cli/options.h"

namespace octet::cli {

/// A pretty number of bytes: "5.24 GB".
std::string format_bytes(int64_t bytes);

/// Whether a stream should be coloured: it is a terminal and NO_COLOR is not set.
bool wants_color(int descriptor);

/// Streams one reply to standard output.
class TextStream {
 public:
  enum class Origin { kTarget, kDraft };
  enum class Part { kSpeech, kThinking };

  explicit TextStream(Marks marks);
  /// kAuto resolved.
  Marks marks() const { return marks_; }

  void write(std::string_view text, Origin origin, Part part);
  /// Ends the line if one is open.
  void fresh_line();
  /// Leaves all styles; ends the line if one is open.
  void end();

  /// One line that explains the marks; empty without marks.
  std::string legend() const;

 private:
  void change_style(Origin origin, Part part);

  Marks marks_;
  Origin origin_ = Origin::kTarget;
  Part part_ = Part::kSpeech;
  bool styled_ = false;
  bool line_open_ = false;
};

/// A line on standard error that is overwritten as work goes on. Where standard error is no
/// terminal: silent, or, with `line_every` above zero, a line of its own at most that often, so
/// that the log of hours of work shows how far it is.
class Progress {
 public:
  explicit Progress(bool enabled, std::chrono::seconds line_every = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  bool enabled_;
  bool overwrites_;
  std::chrono::seconds line_every_;
  std::chrono::steady_clock::time_point last_line_;
  bool shown_ = false;
};

}  // namespace octet::cli
