// Lines that a person types: edited, recalled and completed over several lines on a terminal, plain
// lines from a file or a pipe. The one place that knows libedit. Not for what a line means.
// Invariant: between two reads the terminal is as the program found it, so that Ctrl-C is a signal
// again.
#pragma once

#include <memory>
#include <string>

namespace octet::cli {

class LineEditor {
 public:
  /// `history_file` holds earlier lines, on a terminal; empty: none are kept. It is read here and
  /// written at the end. Throws Error when it is there and cannot be read.
  explicit LineEditor(std::string history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Standard input is a terminal.
  bool interactive() const;

  enum class Kind {
    kText,
    kInterrupted,  // Ctrl-C: what was typed is thrown away
    kEnd,          // Ctrl-D on an empty line, or the end of the input
  };
  struct Line {
    Kind kind = Kind::kEnd;
    // Without its end; on a terminal it may hold line breaks. Of what was thrown away nothing but
    // whether it was empty.
    std::string text;
  };
  /// A line of a file or pipe is echoed behind `prompt`, so that a log reads as a talk.
  Line read(const std::string& prompt);
  /// For later recall; on a terminal alone.
  void remember(const std::string& text);

 private:
  struct Terminal;

  std::string history_file_;
  std::unique_ptr<Terminal> terminal_;  // null: plain lines
};

}  // namespace octet::cli
