// Another program that `octet bench cycle` times beside its own passes: a shell command, and where
// in its output it tells its time. Invariant: a time is of a run that succeeded.
#pragma once

#include <memory>
#include <regex.h>
#include <string>

namespace octet::cli {

class OtherProgram {
 public:
  /// `command`: for the shell; several lines and comments are fine. `pattern`: a POSIX extended
  /// regular expression whose first group is the time in milliseconds; empty: the whole run is
  /// timed. Throws Error(kInvalidArgument) for a pattern that is none or has no group.
  OtherProgram(std::string command, std::string pattern);

  /// Runs it once, to its end; milliseconds. Throws Error: kIo when it cannot be started or fails,
  /// with its last line; kInvalidArgument when the pattern finds no positive number in its output.
  double run_ms() const;

 private:
  struct FreeRegex {
    void operator()(regex_t* regex) const;
  };

  double told_ms(const std::string& output) const;

  std::string command_;
  std::string pattern_;
  std::unique_ptr<regex_t, FreeRegex> regex_;  // null without a pattern
};

}  // namespace octet::cli
