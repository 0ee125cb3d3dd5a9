// Where `octet quantize`, `convert` and `imatrix` write: what is killed, runs out of room or is
// given damaged files leaves nothing under the final name, and nothing that is read is replaced.

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/quantize/importance.h"
#include "support/golden_files.h"
#include "support/quantize_runs.h"
#include "support/random_models.h"
#include "support/run_program.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

pid_t start(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OCTET_PROGRAM);
  std::vector<char*> raw;
  for (std::string& argument : arguments) {
    raw.push_back(argument.data());
  }
  raw.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(OCTET_PROGRAM, raw.data());
    ::_exit(127);
  }
  return child;
}

/// Starts the program and kills it once it writes. True when it had not finished.
bool kill_while_writing(const TemporaryDirectory& directory, std::vector<std::string> arguments) {
  const pid_t child = start(std::move(arguments));
  int status = 0;
  while (partial_files(directory) == 0 && ::waitpid(child, &status, WNOHANG) == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(Quantize, KilledWhileWritingItLeavesNothingThatLooksDoneAndTheNextRunCleansUp) {
  const TemporaryDirectory directory;
  const std::string source = synth_target(directory);
  const std::vector<std::vector<std::string>> commands = {
      {"quantize", source, directory.file("out.gguf"), "--type", "Q4_K_M", "-t", "1", "-q"},
      {"convert", source, directory.file("folder"), "-t", "1", "-q"},
      {"quantize", source, directory.file("nvfp4"), "--type", "NVFP4", "-t", "1", "-q"}};
  for (const std::vector<std::string>& command : commands) {
    SCOPED_TRACE(command.front());
    ASSERT_TRUE(kill_while_writing(directory, command)) << "it was too quick to be killed";
    EXPECT_FALSE(exists(command[2]));
    EXPECT_EQ(partial_files(directory), 1);
    ASSERT_EQ(run_octet(command).exit_code, 0);
    EXPECT_EQ(partial_files(directory), 0);
    EXPECT_NE(open_checkpoint(command[2]), nullptr);
  }
}

/// Starts the program and kills it after so long. True when it had not finished.
bool kill_after(std::vector<std::string> arguments, std::chrono::milliseconds time) {
  const pid_t child = start(std::move(arguments));
  std::this_thread::sleep_for(time);
  int status = 0;
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

TEST(Imatrix, KilledAtAnyTimeItLeavesAllOrNothing) {
  const TemporaryDirectory directory;
  const std::string text = directory.write("text", "A river is water that flows to the sea.");
  const std::string output = directory.file("importance.gguf");
  const std::vector<std::string> command = {
      "imatrix", "-m", kPairTarget, "-o", output, "-f", text, "-t", "1", "-q"};
  int killed = 0;
  // Its time is spent before it writes; a few milliseconds later it is done.
  for (std::chrono::milliseconds time(1); time.count() < 2000;
       time = time * 5 / 4 + std::chrono::milliseconds(1)) {
    std::filesystem::remove(output);
    killed += kill_after(command, time) ? 1 : 0;
    if (exists(output)) {
      EXPECT_FALSE(read_importance(output).entries.empty());
      break;
    }
  }
  EXPECT_GT(killed, 3);
  const int expected = exists(output) ? 2 : 0;
  EXPECT_EQ(run_octet(command).exit_code, expected) << "it does not overwrite";
  EXPECT_FALSE(read_importance(output).entries.empty());
  EXPECT_EQ(partial_files(directory), 0);
}

TEST(Convert, KilledWhileReplacingAFolderItLeavesTheOldOneOrTheNew) {
  const TemporaryDirectory directory;
  const std::string folder = directory.file("folder");
  ASSERT_EQ(run_octet({"convert", kPairTarget, folder, "--dequantize", "-q"}).exit_code, 0);
  const std::vector<std::string> command = {
      "convert", kPairTarget, folder, "--dequantize", "--force", "-q", "-t", "1"};
  int killed = 0;
  for (std::chrono::milliseconds time(1); time.count() < 5000;
       time = time * 5 / 4 + std::chrono::milliseconds(1)) {
    const bool unfinished = kill_after(command, time);
    killed += unfinished ? 1 : 0;
    ASSERT_NO_THROW(open_checkpoint(folder)) << "after " << time.count() << " ms";
    if (!unfinished) {
      break;
    }
  }
  EXPECT_GT(killed, 3);
  ASSERT_EQ(run_octet(command).exit_code, 0);
  EXPECT_EQ(partial_files(directory), 0);
}

TEST(Quantize, KilledWhileReplacingAFileItLeavesTheOldOneOrTheNew) {
  const TemporaryDirectory directory;
  const std::string source = synth_target(directory);
  const std::string file = directory.file("out.gguf");
  const auto command = [&](const char* type) {
    return std::vector<std::string>{
        "quantize", source, file, "--type", type, "--force", "-q", "-t", "1"};
  };
  ASSERT_EQ(run_octet(command("Q8_0")).exit_code, 0);
  const std::string old = read_text(file);
  int killed = 0;
  for (std::chrono::milliseconds time(1); time.count() < 5000;
       time = time * 5 / 4 + std::chrono::milliseconds(1)) {
    const bool unfinished = kill_after(command("Q4_0"), time);
    killed += unfinished ? 1 : 0;
    const std::string found = read_text(file);
    if (!unfinished) {
      EXPECT_FALSE(found == old);
      break;
    }
    if (found != old) {  // killed behind the renaming
      EXPECT_EQ(open_checkpoint(file)->at("blk.0.attn_q.weight").dtype, DType::kQ4_0);
      break;
    }
  }
  EXPECT_GT(killed, 3);
  ASSERT_EQ(run_octet(command("Q4_0")).exit_code, 0);
  EXPECT_EQ(partial_files(directory), 0);
}

TEST(Convert, NeverReplacesWhatItReadsOrWhatIsNoCheckpoint) {
  const TemporaryDirectory directory;
  const std::string home = directory.file("home");
  const std::string folder = home + "/model";
  std::filesystem::create_directory(home);
  ASSERT_EQ(run_octet({"convert", kPairTarget, folder, "--dequantize", "-q"}).exit_code, 0);
  const std::string text = directory.write("home/text", "A river.");
  const auto expect_refusal = [&](std::vector<std::string> command, const char* reason) {
    command.insert(command.end(), {"--force", "-q"});
    const ProgramResult result = run_octet(command);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, testing::HasSubstr(reason));
    EXPECT_TRUE(exists(text));
    EXPECT_NO_THROW(open_checkpoint(folder));
  };
  expect_refusal({"convert", folder, home}, "would be lost");
  expect_refusal(
      {"convert", kPairDrafter, folder, "--dequantize", "--tokenizer", folder}, "are the same"
  );
  expect_refusal({"convert", kPairTarget, home, "--dequantize"}, "without a checkpoint");
  expect_refusal({"convert", kPairTarget, folder, "--format", "gguf"}, "is a folder");
  expect_refusal(gptq_command(folder, text, folder), "are the same");
  EXPECT_EQ(
      run_octet({"convert", kPairTarget, folder + "/", "--dequantize", "--force", "-q"}).exit_code,
      0
  );
}

TEST(Quantize, NeverReplacesAnotherFileOfAnInput) {
  const TemporaryDirectory directory;
  const auto parts = write_gguf_parts(directory.file("m"), *open_checkpoint(kPairDrafter), 2);
  const std::string& first = parts[0];
  const std::string& second = parts[1];
  const std::string folder = directory.file("folder");
  ASSERT_EQ(
      run_octet({"convert", kPairTarget, folder, "--dequantize", "--shard-size", "8MB", "-q"})
          .exit_code,
      0
  );
  const std::string text = directory.write("text", "A river.");
  const auto expect_refusal = [](std::vector<std::string> command, const std::string& output) {
    SCOPED_TRACE(output);
    ASSERT_TRUE(exists(output));
    const std::string before = read_text(output);
    command.insert(command.end(), {"--force", "-q"});
    const ProgramResult result = run_octet(command);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, testing::HasSubstr("are the same"));
    EXPECT_TRUE(read_text(output) == before);
  };
  expect_refusal({"quantize", first, second, "--type", "Q8_0"}, second);
  expect_refusal({"convert", second, first}, first);
  for (const char* name :
       {"model-00002-of-00002.safetensors",
        "config.json",
        "model.safetensors.index.json",
        "tokenizer.json"}) {
    const std::string file = folder + "/" + name;
    expect_refusal({"convert", folder, file, "--format", "gguf"}, file);
    expect_refusal(
        {"convert", kPairDrafter, file, "--format", "gguf", "--tokenizer", folder}, file
    );
    expect_refusal({"imatrix", "-m", folder, "-o", file, "-f", text}, file);
  }
  // A folder that holds a part of the drafter's target, named by the other part.
  const std::string home = directory.file("home");
  std::filesystem::create_directory(home);
  directory.write("home/config.json", "{}");
  std::filesystem::rename(second, home + "/second.gguf");
  std::filesystem::create_symlink(home + "/second.gguf", second);
  const ProgramResult result =
      run_octet({"quantize", first, home, "--type", "NVFP4", "--force", "-q"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("would be lost"));
  EXPECT_NO_THROW(open_checkpoint(first));
}

TEST(Quantize, WithoutRoomItSaysSoAndLeavesNothing) {
  const TemporaryDirectory directory;
  const std::string source = synth_target(directory);
  const std::string text = directory.write("text", "A river is water that flows.");
  struct Case {
    std::vector<std::string> command;
    std::string output;
    int blocks = 512;  // 256 kB
  };
  const std::string file = directory.file("out.gguf");
  const std::string folder = directory.file("folder");
  const std::vector<Case> cases = {
      {{"quantize", source, file, "--type", "Q8_0", "-q"}, file},
      {gptq_command(folder, text, kPairTarget), folder},
      {{"convert", source, folder, "-q"}, folder},
      {{"imatrix", "-m", kPairTarget, "-o", file, "-f", text, "-q"}, file, 8}};
  for (const Case& limited : cases) {
    SCOPED_TRACE(limited.command.front());
    const ProgramResult result = run_with_little_room(limited.command, limited.blocks);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, testing::HasSubstr("cannot write the file"));
    EXPECT_FALSE(exists(limited.output));
    EXPECT_EQ(partial_files(directory), 0);
  }
}

TEST(Quantize, MalformedFilesGiveAnErrorAndNoOutput) {
  const TemporaryDirectory directory;
  const std::string whole = read_text(kPairDrafter);
  const std::string source = directory.file("mutated.gguf");
  int refused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomNumbers random(seed);
    std::string bytes = whole;
    if (seed % 4 == 0) {
      bytes.resize(static_cast<size_t>(random.integer(0, std::ssize(whole) - 1)));
    } else {
      for (int64_t i = random.integer(1, 4); i > 0; --i) {
        bytes[static_cast<size_t>(random.integer(0, 5000))] = static_cast<char>(random.bits());
      }
    }
    directory.write("mutated.gguf", bytes);
    const bool to_folder = seed % 3 == 0;
    const std::string output = directory.file(to_folder ? "folder" : "out.gguf");
    const std::vector<std::string> command =
        to_folder ? std::vector<std::string>{"quantize", source, output, "--type", "NVFP4", "-q"}
                  : std::vector<std::string>{"quantize", source, output, "--type", "Q4_K", "-q"};
    const ProgramResult result = run_octet(command);
    ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 2) << result.err;
    if (result.exit_code == 2) {
      ++refused;
      EXPECT_TRUE(result.err.starts_with("octet: ")) << result.err;
      EXPECT_FALSE(exists(output));
    }
    std::filesystem::remove_all(output);
    EXPECT_EQ(partial_files(directory), 0);
  }
  EXPECT_GE(refused, 30);
}

/// `bytes` cut somewhere, or with some bytes among the first `within` changed.
std::string damaged(const std::string& bytes, int64_t within, RandomNumbers& random) {
  std::string result = bytes;
  if (random.integer(0, 3) == 0) {
    result.resize(static_cast<size_t>(random.integer(0, std::ssize(bytes) - 1)));
    return result;
  }
  for (int64_t i = random.integer(1, 4); i > 0; --i) {
    result[static_cast<size_t>(random.integer(0, std::min(within, std::ssize(bytes)) - 1))] =
        static_cast<char>(random.bits());
  }
  return result;
}

/// Runs a command on damaged input. True when it refused: in words, and without an output. What it
/// writes otherwise opens.
bool refuses(
    const TemporaryDirectory& directory,
    const std::vector<std::string>& command,
    const std::string& output
) {
  const ProgramResult result = run_octet(command);
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 2) << result.exit_code << result.err;
  if (result.exit_code == 0) {
    EXPECT_NO_THROW(open_checkpoint(output));
  } else {
    EXPECT_TRUE(result.err.starts_with("octet: ")) << result.err;
    EXPECT_FALSE(exists(output));
  }
  std::filesystem::remove_all(output);
  EXPECT_EQ(partial_files(directory), 0);
  return result.exit_code != 0;
}

struct Damage {
  std::string file;
  int64_t within;  // headers and keys: behind them are numbers, which may be any
  std::vector<std::string> command;
};

/// Damages each file `rounds` times in a copy of the folder `whole`. How often that was refused.
int count_refusals(
    const TemporaryDirectory& directory,
    const std::string& whole,
    const std::vector<Damage>& damages,
    const std::string& output,
    uint64_t rounds
) {
  const std::string folder = directory.file("damaged");
  int refused = 0;
  for (uint64_t round = 0; round < rounds * damages.size(); ++round) {
    const Damage& damage = damages[round % damages.size()];
    SCOPED_TRACE(damage.file + " round " + std::to_string(round));
    RandomNumbers random(round + 1);
    std::filesystem::remove_all(folder);
    std::filesystem::copy(
        whole,
        folder,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::create_hard_links
    );
    const std::string path = folder + "/" + damage.file;
    const std::string bytes = damaged(read_text(path), damage.within, random);
    std::filesystem::remove(path);
    directory.write("damaged/" + damage.file, bytes);
    refused += refuses(directory, damage.command, output) ? 1 : 0;
  }
  return refused;
}

constexpr int64_t kAll = 1 << 20;  // within texts

TEST(Convert, DamagedFoldersAndImportanceGiveAnErrorOrAFileThatOpens) {
  const TemporaryDirectory directory;
  const std::string whole = directory.file("whole");
  ASSERT_EQ(run_octet({"convert", kPairDrafter, whole, "--dequantize", "-q"}).exit_code, 0);
  const std::string text = directory.write("text", "A river is water.");
  ASSERT_EQ(
      run_octet({"imatrix", "-m", kPairTarget, "-f", text, "-o", whole + "/importance", "-q"})
          .exit_code,
      0
  );
  const std::string folder = directory.file("damaged");
  const std::string output = directory.file("out.gguf");
  const std::vector<std::string> convert = {
      "convert", folder, output, "--tokenizer", kPairTarget, "-q"};
  const std::vector<Damage> damages = {
      {"model.safetensors", 3000, convert},
      {"config.json", kAll, convert},
      {"importance",
       4000,
       {"quantize",
        kPairTarget,
        output,
        "--type",
        "Q4_0",
        "--imatrix",
        folder + "/importance",
        "-q"}}};
  EXPECT_GE(count_refusals(directory, whole, damages, output, 15), 15);
}

TEST(Convert, DamagedFoldersOfTargetsGiveAnErrorOrAFileThatOpens) {
  const TemporaryDirectory directory;
  const std::string whole = directory.file("whole");
  ASSERT_EQ(
      run_octet({"convert", kPairTarget, whole, "--dequantize", "--shard-size", "8MB", "-q"})
          .exit_code,
      0
  );
  const std::string output = directory.file("out.gguf");
  const std::vector<std::string> convert = {"convert", directory.file("damaged"), output, "-q"};
  const std::vector<Damage> damages = {
      {"config.json", kAll, convert},
      {"generation_config.json", kAll, convert},
      {"tokenizer.json", 4000, convert},
      {"model.safetensors.index.json", kAll, convert},
      {"model-00001-of-00002.safetensors", 3000, convert},
      {"model-00002-of-00002.safetensors", 3000, convert}};
  EXPECT_GE(count_refusals(directory, whole, damages, output, 5), 15);
}

TEST(Convert, DamagedFoldersOfNvfp4GiveAnErrorOrAFileThatOpens) {
  const TemporaryDirectory directory;
  const std::string whole = directory.file("whole");
  ASSERT_EQ(run_octet({"quantize", kPairDrafter, whole, "--type", "NVFP4", "-q"}).exit_code, 0);
  const std::string output = directory.file("out.gguf");
  const std::vector<std::string> convert = {"convert", directory.file("damaged"), output, "-q"};
  const std::vector<Damage> damages = {
      {"hf_quant_config.json", kAll, convert},
      {"config.json", kAll, convert},
      {"model.safetensors", 5000, convert}};
  EXPECT_GE(count_refusals(directory, whole, damages, output, 10), 10);
}

TEST(Quantize, DamagedPartsOfASplitFileGiveAnErrorOrAFileThatOpens) {
  const TemporaryDirectory directory;
  const std::string whole = directory.file("whole");
  std::filesystem::create_directory(whole);
  write_gguf_parts(whole + "/m", *open_checkpoint(kPairDrafter), 3);
  const std::string output = directory.file("out.gguf");
  const std::vector<std::string> quantize = {
      "quantize", directory.file("damaged/m-00001-of-00003.gguf"), output, "--type", "Q4_0", "-q"};
  const std::vector<Damage> damages = {
      {"m-00001-of-00003.gguf", 2000, quantize},
      {"m-00002-of-00003.gguf", 1000, quantize},
      {"m-00003-of-00003.gguf", 1000, quantize}};
  EXPECT_GE(count_refusals(directory, whole, damages, output, 10), 15);
  std::filesystem::copy(whole, directory.file("lacking"));
  std::filesystem::remove(directory.file("lacking/m-00002-of-00003.gguf"));
  const std::string first = directory.file("lacking/m-00001-of-00003.gguf");
  EXPECT_TRUE(refuses(directory, {"quantize", first, output, "--type", "Q4_0", "-q"}, output));
}

}  // namespace
}  // namespace octet::test
