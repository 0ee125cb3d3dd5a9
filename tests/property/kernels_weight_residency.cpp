// Weights are resident once: while a matrix is packed the file's pages go, and rows can still be
// gathered from the file afterwards.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/mapped_file.h"
#include "octet/base/process_memory.h"
#include "octet/kernels/ops.h"
#include "support/sanitizers.h"
#include "support/temporary_directory.h"
#include "support/vector_oracle.h"

namespace octet::test {
namespace {

constexpr int64_t kRows = 24576;
constexpr int64_t kCols = 2048;
constexpr int64_t kFileBytes = kRows * kCols * 2;
/// Steps of the packers, huge pages, and whatever else the process does meanwhile.
constexpr int64_t kSlackBytes = int64_t{24} << 20;

/// A number that BF16 holds exactly.
float element(int64_t row, int64_t col) {
  return static_cast<float>((row * 31 + col * 7) % 251 - 125) / 64.0F;
}

std::shared_ptr<Checkpoint> mapped_matrix(const std::string& path) {
  {
    std::ofstream stream(path, std::ios::binary);
    std::vector<uint16_t> row(kCols);
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kCols; ++c) {
        row[static_cast<size_t>(c)] =
            static_cast<uint16_t>(std::bit_cast<uint32_t>(element(r, c)) >> 16);
      }
      stream.write(reinterpret_cast<const char*>(row.data()), kCols * 2);
    }
  }
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = path;
  checkpoint->files.push_back(MappedFile::open(path));
  LogicalTensor tensor;
  tensor.name = "matrix";
  tensor.dtype = DType::kBF16;
  tensor.shape = {kRows, kCols};
  tensor.data = checkpoint->files.front()->bytes();
  checkpoint->add(tensor);
  return checkpoint;
}

int64_t touch(std::span<const std::byte> bytes) {
  int64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 4096) {
    sum += static_cast<int64_t>(bytes[i]);
  }
  return sum;
}

/// The largest resident size while it lives.
class PeakSampler {
 public:
  PeakSampler() : thread_([this] { sample(); }) {}
  ~PeakSampler() { stop(); }
  int64_t stop() {
    done_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return peak_;
  }

 private:
  void sample() {
    while (!done_) {
      peak_ = std::max(peak_, resident_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::atomic<bool> done_{false};
  int64_t peak_ = 0;
  std::thread thread_;
};

TEST(WeightResidency, PackingNeverHoldsTwoCopiesAndRowsCanBeGatheredAfterwards) {
  if (kKeepsShadowMemory) {
    GTEST_SKIP() << "AddressSanitizer's own memory counts as resident";
  }
  const TemporaryDirectory directory;
  const auto checkpoint = mapped_matrix(directory.file("weights"));
  const LogicalTensor& matrix = checkpoint->at("matrix");
  const std::unique_ptr<Ops> ops = ops_for("", 2);
  const int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  ASSERT_GT(touch(matrix.data), 0);
  ASSERT_GT(resident_bytes(), before + kFileBytes / 2) << "the file's pages must count";

  PeakSampler sampler;
  const std::unique_ptr<Weight> weight = ops->prepare(*checkpoint, matrix);
  const int64_t peak = sampler.stop();
  const int64_t after = resident_bytes();
  EXPECT_EQ(weight->resident_bytes, ops->prepared_bytes(matrix));
  EXPECT_GT(after, before + weight->resident_bytes / 2);
  EXPECT_LT(peak, before + kFileBytes + kSlackBytes);
  EXPECT_LT(after, before + weight->resident_bytes + kSlackBytes);

  const std::vector<TokenId> ids = {0, 1, 12345, kRows - 1, 77};
  PaddedRows rows(static_cast<int64_t>(ids.size()), kCols);
  ops->gather_rows(matrix, ids, 1.0F, rows.view());
  for (size_t i = 0; i < ids.size(); ++i) {
    for (int64_t c = 0; c < kCols; ++c) {
      ASSERT_EQ(rows.view().row(static_cast<int64_t>(i))[c], element(ids[i], c)) << ids[i];
    }
  }
  EXPECT_LT(resident_bytes(), before + weight->resident_bytes + kSlackBytes);
}

}  // namespace
}  // namespace octet::test
