// Runs octet as a user does: arguments and standard input in, exit code and both outputs out.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "support/temporary_directory.h"

namespace octet::test {

struct ProgramResult {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string out;
  std::string err;
};

inline std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char character : text) {
    quoted += character == '\'' ? std::string("'\\''") : std::string(1, character);
  }
  return quoted + "'";
}

/// For a child that has set up its ends: becomes octet.
[[noreturn]] inline void become_octet(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OCTET_PROGRAM);
  std::vector<char*> list;
  for (std::string& argument : arguments) {
    list.push_back(argument.data());
  }
  list.push_back(nullptr);
  execv(OCTET_PROGRAM, list.data());
  _exit(127);
}

inline ProgramResult run_program(
    const std::string& program,
    const std::vector<std::string>& arguments,
    std::string_view input = {}
) {
  const TemporaryDirectory directory;
  std::string command = shell_quoted(program);
  for (const std::string& argument : arguments) {
    command += ' ' + shell_quoted(argument);
  }
  command += " <" + shell_quoted(directory.write("in", input));
  command +=
      " >" + shell_quoted(directory.file("out")) + " 2>" + shell_quoted(directory.file("err"));
  const int status =
      std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): tests have one thread
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_text(directory.file("out"));
  result.err = read_text(directory.file("err"));
  return result;
}

inline ProgramResult run_octet(
    const std::vector<std::string>& arguments, std::string_view input = {}
) {
  return run_program(OCTET_PROGRAM, arguments, input);
}

/// Runs with files limited to so many blocks of 512 bytes: writing more fails as on a full disk.
/// Tells errors alone.
inline ProgramResult run_with_little_room(const std::vector<std::string>& arguments, int blocks) {
  const TemporaryDirectory directory;
  std::string command =
      "trap '' XFSZ; ulimit -f " + std::to_string(blocks) + "; " + shell_quoted(OCTET_PROGRAM);
  for (const std::string& argument : arguments) {
    command += ' ' + shell_quoted(argument);
  }
  command = "sh -c " + shell_quoted(command + " 2>" + shell_quoted(directory.file("err")));
  const int status =
      std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe): tests have one thread
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.err = read_text(directory.file("err"));
  return result;
}

inline const std::string kPairTarget = OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf";
inline const std::string kPairDrafter =
    OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-dflash-q8_0.gguf";

/// `command` with the shipped pair on one thread (tests share the machine), then `more`.
inline ProgramResult run_with_pair(
    const std::string& command, const std::vector<std::string>& more, std::string_view input = {}
) {
  std::vector<std::string> arguments = {command, "-m", kPairTarget, "-md", kPairDrafter, "-t", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_octet(arguments, input);
}

}  // namespace octet::test
