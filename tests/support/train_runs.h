// Runs of octet-train in tests: as a program, and in this process for what ends before it trains or
// trains for a moment, with refusals as text.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/train/options.h"
#include "support/temporary_directory.h"

namespace octet::test {

inline const std::string kDrafter = OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-dflash-q8_0.gguf";
inline const std::string kTarget = OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf";

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string in_quotes(const std::string& text) {
  return "'" + text + "'";  // no argument here has a quote in it
}

inline std::string command_of(const std::vector<std::string>& arguments) {
  std::string command = in_quotes(OCTET_TRAIN_PROGRAM);
  for (const std::string& argument : arguments) {
    command += " " + in_quotes(argument);
  }
  return command;
}

inline Outcome run_train(
    const std::vector<std::string>& arguments, const TemporaryDirectory& directory
) {
  static int runs = 0;
  const std::string name = "run" + std::to_string(runs++);
  const std::string command = command_of(arguments) + " >" +
                              in_quotes(directory.file(name + ".out")) + " 2>" +
                              in_quotes(directory.file(name + ".err"));
  const int status = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  return {
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
      read_text(directory.file(name + ".out")),
      read_text(directory.file(name + ".err"))};
}

/// Dialogues of the corpus, as texts.
inline std::string corpus(const TemporaryDirectory& directory, int count) {
  const std::string file = directory.file("corpus.jsonl");
  const Outcome outcome =
      run_train({"corpus", "-o", file, "--dialogues", std::to_string(count)}, directory);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return file;
}

inline std::vector<std::string> short_run(
    const std::string& data, const std::string& output, const std::string& steps
) {
  return {"drafter",  "-m",      kTarget,     "--data", data,     "-o", output,     "--steps",
          steps,      "--batch", "2",         "-t",     "1",      "-q", "--layers", "1",
          "--window", "64",      "--anchors", "24",     "--seed", "3"};
}

inline void append(std::vector<std::string>& arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

inline std::vector<std::string> with(
    std::vector<std::string> arguments, const std::vector<std::string>& more
) {
  append(arguments, more);
  return arguments;
}

/// In this process: starting one loads all of libtorch.
struct RunCommand {
  int operator()(const train::HelpNotice& /*notice*/) const { return 0; }
  int operator()(const train::DrafterArguments& a) const { return train::train_drafter(a); }
  int operator()(const train::TargetArguments& a) const { return train::train_target(a); }
  int operator()(const train::CorpusArguments& a) const { return train::write_corpus(a); }
  int operator()(const train::SamplesArguments& a) const { return train::write_samples(a); }
};

/// The sentence that the arguments are refused with; "" when they are not.
inline std::string refusal(const std::vector<std::string>& arguments) {
  try {
    std::visit(RunCommand{}, train::parse_train_arguments(arguments));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

inline void expect_refusal(const std::vector<std::string>& arguments, const std::string& says) {
  const std::string what = refusal(arguments);
  EXPECT_NE(what.find(says), std::string::npos) << says << ": '" << what << "'";
  EXPECT_EQ(what.find('\n'), std::string::npos) << what;
}

/// With one more value, or another one where the flag is there.
inline std::vector<std::string> changed(
    std::vector<std::string> arguments, const std::string& flag, const std::string& value
) {
  const auto found = std::find(arguments.begin(), arguments.end(), flag);
  if (found == arguments.end()) {
    append(arguments, {flag, value});
  } else {
    *(found + 1) = value;
  }
  return arguments;
}

}  // namespace octet::test
