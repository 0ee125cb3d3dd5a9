// Runs of `octet quantize` and `octet convert` that several tests make, and what they leave behind.
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
