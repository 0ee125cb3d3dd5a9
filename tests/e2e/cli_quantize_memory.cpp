// What `octet quantize` and `octet convert` hold in memory, pages of the mapped source included, of
// a checkpoint several times as large as they may become.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/quantize/importance.h"
#include "support/conversions.h"
#include "support/random_models.h"
#include "support/run_program.h"
#include "support/sanitizers.h"
#include "support/write_checkpoint.h"

namespace octet::test {
namespace {

constexpr int64_t kBoundBytes = int64_t{64} << 20;

/// A drafter of many layers, which all have the same values, with a head that alone is twice the
/// bound. Its rows begin nowhere near the borders of pages.
std::string write_large_drafter(const TemporaryDirectory& directory) {
  DFlashShape shape;
  shape.hidden = 768;  // whole super-blocks, too
  shape.head_dim = 128;
  shape.heads = 8;
  shape.feed_forward = 1280;
  shape.windowed = {true};
  shape.causal = {false};
  shape.dtype = DType::kBF16;
  const auto one = make_dflash(shape, 1);
  constexpr int64_t kLayers = 14;
  constexpr int64_t kVocabulary = 92'000;
  Checkpoint large;
  large.metadata = one->metadata;
  large.metadata.set("dflash.block_count", uint32_t{kLayers});
  large.metadata.set("dflash.vocab_size", uint32_t{kVocabulary});
  const MetadataArray every(std::vector<bool>(kLayers, false));
  large.metadata.set("dflash.attention.sliding_window_pattern", every);
  large.metadata.set("dflash.attention.causal_pattern", every);
  const SmallTokenizer tokenizer(kVocabulary);
  tokenizer.add_to(large.metadata);
  const std::string first_layer = "blk.0.";
  std::span<const std::byte> values;
  for (const LogicalTensor& tensor : one->tensors()) {
    if (!tensor.name.starts_with(first_layer)) {
      large.add(tensor);
      continue;
    }
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      LogicalTensor copy = tensor;
      copy.name = fmt::format("blk.{}.{}", layer, tensor.name.substr(first_layer.size()));
      large.add(copy);
    }
    values = tensor.data;  // the last is a matrix
  }
  LogicalTensor head = one->at("fc.weight");
  head.name = "output.weight";
  head.shape = {kVocabulary, shape.hidden};
  std::vector<std::byte> bytes(static_cast<size_t>(kVocabulary * shape.hidden) * 2);
  for (size_t at = 0; at < bytes.size(); at += values.size()) {
    std::memcpy(bytes.data() + at, values.data(), std::min(values.size(), bytes.size() - at));
  }
  head.data = bytes;
  large.add(head);
  const std::string path = directory.file("large.gguf");
  write_gguf(path, large.metadata, large.tensors());
  return path;
}

/// The line VmHWM of a process, in bytes; 0 when it is gone.
int64_t peak_of(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  const std::string name = "VmHWM:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) {
      return std::stoll(line.substr(name.size())) * 1024;
    }
  }
  return 0;
}

/// Importance of every matrix, all of its columns alike.
std::string write_even_importance(const TemporaryDirectory& directory, const std::string& model) {
  ImportanceMatrix matrix;
  const auto checkpoint = open_checkpoint(model);
  for (const LogicalTensor& tensor : checkpoint->tensors()) {
    if (tensor.shape.size() == 2) {
      matrix.entries[tensor.name] = {
          std::vector<float>(static_cast<size_t>(tensor.cols()), 1.0F), 1};
    }
  }
  const std::string path = directory.file("importance.gguf");
  write_importance(path, matrix);
  return path;
}

struct Held {
  int exit_code = -1;
  int64_t peak_bytes = 0;
};

/// Looks at the program's peak until it ends. The peak only grows, so the last look counts, and
/// what the child was before it became octet does not.
Held run_watched(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child == 0) {
    become_octet(arguments);
  }
  Held held;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const int64_t peak = peak_of(child);
    held.peak_bytes = peak > 0 ? peak : held.peak_bytes;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  held.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return held;
}

TEST(Quantize, HoldsAFewPiecesOfTheSourceAtATime) {
  const TemporaryDirectory directory;
  const std::string source = write_large_drafter(directory);
  ASSERT_GT(std::filesystem::file_size(source), uint64_t{4} * kBoundBytes);
  const std::string gguf = directory.file("out.gguf");
  const std::string folder = directory.file("folder");
  const std::string nvfp4 = directory.file("nvfp4");
  const std::string importance = write_even_importance(directory, source);
  const std::vector<std::vector<std::string>> commands = {
      {"quantize", source, gguf, "--type", "Q4_0", "-t", "2", "-q"},
      {"quantize", source, nvfp4, "--type", "NVFP4", "-t", "2", "-q"},
      {"convert", source, folder, "-t", "2", "-q"},
      {"quantize", folder, gguf, "--type", "Q8_0", "-t", "2", "-q", "--force"},
      {"quantize",
       source,
       gguf,
       "--type",
       "Q4_K",
       "--imatrix",
       importance,
       "-t",
       "2",
       "-q",
       "--force"},
  };
  for (const std::vector<std::string>& command : commands) {
    SCOPED_TRACE(fmt::format("{} {}", command[0], command[2]));
    const Held held = run_watched(command);
    EXPECT_EQ(held.exit_code, 0);
    EXPECT_GT(held.peak_bytes, int64_t{4} << 20) << "that is no running octet";
    if (!kKeepsShadowMemory) {  // which keeps memory of its own
      EXPECT_LT(held.peak_bytes, kBoundBytes);
    }
    RecordProperty(
        fmt::format("peak_bytes_{}", &command - commands.data()), std::to_string(held.peak_bytes)
    );
  }
  EXPECT_EQ(open_checkpoint(gguf)->at("output.weight").dtype, DType::kQ4K);
}

}  // namespace
}  // namespace octet::test
