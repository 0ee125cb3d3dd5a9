#include "octet/cli/other_program.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <sys/wait.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet::cli {
namespace {

struct ClosePipe {
  void operator()(FILE* pipe) const { pclose(pipe); }
};

/// "ended with exit code 3: no such model", of what a shell said and left.
std::string failure(int status, std::string_view output) {
  std::string text = WIFEXITED(status) ? fmt::format("ended with exit code {}", WEXITSTATUS(status))
                                       : fmt::format("was ended by signal {}", WTERMSIG(status));
  const size_t end = output.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) {
    return text;
  }
  output = output.substr(0, end + 1);
  const size_t line = output.find_last_of("\r\n");
  output.remove_prefix(line == std::string_view::npos ? 0 : line + 1);
  return fmt::format("{}: {}", text, output);
}

}  // namespace

void OtherProgram::FreeRegex::operator()(regex_t* regex) const {
  regfree(regex);
  delete regex;
}

OtherProgram::OtherProgram(std::string command, std::string pattern)
    : command_(std::move(command)), pattern_(std::move(pattern)) {
  if (pattern_.empty()) {
    return;
  }
  auto compiled = std::make_unique<regex_t>();
  if (regcomp(compiled.get(), pattern_.c_str(), REG_EXTENDED | REG_NEWLINE) != 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("--compare-pattern '{}' is not a POSIX extended regular expression", pattern_)
    );
  }
  regex_.reset(compiled.release());
  if (regex_->re_nsub == 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("--compare-pattern '{}' has no group; put the number in parentheses", pattern_)
    );
  }
}

double OtherProgram::run_ms() const {
  // In brackets, so that all of a list of commands is heard; the line's end closes a comment.
  const std::string shell = fmt::format("( {}\n) 2>&1", command_);
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<FILE, ClosePipe> pipe(popen(shell.c_str(), "r"));
  if (pipe == nullptr) {
    throw Error(
        ErrorKind::kIo, fmt::format("--compare-command: cannot start a shell for '{}'", command_)
    );
  }
  std::string output;
  std::array<char, 4096> buffer{};
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
    output.append(buffer.data(), got);
  }
  const int status = pclose(pipe.release());
  const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - begin;
  if (status != 0) {
    throw Error(
        ErrorKind::kIo,
        fmt::format(
            "--compare-command '{}' {}; run it alone until it succeeds",
            command_,
            failure(status, output)
        )
    );
  }
  return regex_ != nullptr ? told_ms(output) : wall.count();
}

double OtherProgram::told_ms(const std::string& output) const {
  std::array<regmatch_t, 2> groups{};
  const bool found = regexec(regex_.get(), output.c_str(), groups.size(), groups.data(), 0) == 0;
  if (!found || groups[1].rm_so < 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--compare-pattern '{}' captures nothing in the output of '{}'; run that to see what "
            "it prints",
            pattern_,
            command_
        )
    );
  }
  const std::string_view captured(
      output.data() + groups[1].rm_so, static_cast<size_t>(groups[1].rm_eo - groups[1].rm_so)
  );
  double ms = 0.0;
  const auto [end, error] = std::from_chars(captured.data(), captured.data() + captured.size(), ms);
  if (error != std::errc() || end != captured.data() + captured.size() || !std::isfinite(ms) ||
      ms <= 0.0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--compare-pattern '{}' captures '{}', which is no time in milliseconds; put the group "
            "around the number alone",
            pattern_,
            captured
        )
    );
  }
  return ms;
}

}  // namespace octet::cli
