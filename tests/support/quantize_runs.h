// Runs of `octet quantize`, `octet convert` and `octet compare` that several tests make, and what
// they leave behind.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/run_program.h"

namespace octet::test {

/// The shipped drafter to NVFP4 by GPTQ on `text`.
inline std::vector<std::string> gptq_command(
    const std::string& folder, const std::string& text, const std::string& target
) {
  std::vector<std::string> command = {"quantize", kPairDrafter, folder, "--type", "NVFP4"};
  command.insert(command.end(), {"--gptq", "--calibrate", text, "--target", target, "-q"});
  return command;
}

/// `judged` against `drafter`, both for the shipped target, on one thread (tests share the
/// machine).
inline ProgramResult judge_drafter(
    const std::string& drafter, const std::string& judged, const std::vector<std::string>& more
) {
  std::vector<std::string> command = {"compare", drafter, judged, "--target", kPairTarget};
  command.insert(command.end(), {"-t", "1"});
  command.insert(command.end(), more.begin(), more.end());
  return run_octet(command);
}

/// A made-up target of BF16.
inline std::string synth_target(const TemporaryDirectory& directory) {
  const std::string path = directory.file("bf16.gguf");
  EXPECT_EQ(run_octet({"synth", "--preset", "tiny", "-o", path, "-q"}).exit_code, 0);
  return path;
}

/// What killed runs left beside their outputs.
inline int partial_files(const TemporaryDirectory& directory) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    count += entry.path().string().ends_with(".partial") ? 1 : 0;
  }
  return count;
}

}  // namespace octet::test
