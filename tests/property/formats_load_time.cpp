// Opening a file costs what its metadata cost, not what its weights weigh: a vocabulary of the real
// size opens at once.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

constexpr size_t kTokens = 262144;
constexpr size_t kMerges = 514906;

TEST(FormatsLoadTime, ARealVocabularyOpensAtOnce) {
  std::string text;
  for (size_t i = 0; i < kMerges; ++i) {
    text += "piece " + std::to_string(1'000'000 + i);
  }
  const size_t length = text.size() / kMerges;
  std::vector<std::string_view> merges;
  for (size_t i = 0; i < kMerges; ++i) {
    merges.push_back(std::string_view(text).substr(i * length, length));
  }
  const std::shared_ptr<Checkpoint> draft = test::make_dflash({}, 1);
  const std::vector<std::string_view> tokens(merges.begin(), merges.begin() + kTokens);
  draft->metadata.set("tokenizer.ggml.tokens", MetadataArray(tokens));
  draft->metadata.set("tokenizer.ggml.merges", MetadataArray(merges));
  draft->metadata.set(
      "tokenizer.ggml.scores", MetadataArray(std::vector<float>(kTokens, -1000.0F))
  );
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("draft.gguf");
  test::write_gguf(path, draft->metadata, draft->tensors());

  const auto start = std::chrono::steady_clock::now();
  const auto checkpoint = open_checkpoint(path);
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  RecordProperty("open_ms", static_cast<int>(elapsed.count()));
  EXPECT_EQ(
      checkpoint->metadata.find_strings("tokenizer.ggml.merges")->at(kMerges - 1), merges.back()
  );
  // About 30 ms on an idle core; the limit leaves room for sanitizers and a busy machine.
  EXPECT_LT(elapsed.count(), 3000.0);
}

}  // namespace
}  // namespace octet
