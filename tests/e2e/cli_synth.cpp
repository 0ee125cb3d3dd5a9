// Synthetic checkpoints: every preset of tests' size, kind, recipe and format opens, pairs and
// runs.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/json_value.h"
#include "octet/formats/open_checkpoint.h"
#include "support/run_program.h"

namespace octet::test {
namespace {

std::string synth(
    const TemporaryDirectory& directory,
    const std::string& name,
    const std::vector<std::string>& more
) {
  std::vector<std::string> arguments = {
      "synth", "--preset", "tiny", "-o", directory.file(name), "-q"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramResult result = run_octet(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return directory.file(name);
}

void expect_verified(const std::string& target, const std::string& drafter) {
  const ProgramResult result = run_octet(
      {"verify", "-m", target, "-md", drafter, "--embedding-scale", "1", "-n", "20", "-t", "1"}
  );
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, testing::HasSubstr("identical"));
}

TEST(Synth, EveryRecipeMakesAPairThatVerifies) {
  const TemporaryDirectory directory;
  const std::vector<std::pair<std::string, std::string>> recipes = {
      {"bf16", "bf16"}, {"q8_0", "q8_0"}, {"q4_k_m", "q4_1"}};
  for (const auto& [target_type, drafter_type] : recipes) {
    SCOPED_TRACE(target_type);
    const std::string target = synth(directory, target_type + ".gguf", {"--type", target_type});
    const std::string drafter =
        synth(directory, target_type + "-d.gguf", {"--kind", "drafter", "--type", drafter_type});
    check_tensor_values(*open_checkpoint(target));
    check_tensor_values(*open_checkpoint(drafter));
    expect_verified(target, drafter);
  }
}

TEST(Synth, FollowsTheRecipeOfQ4KM) {
  const TemporaryDirectory directory;
  const auto checkpoint = open_checkpoint(synth(directory, "t.gguf", {"--type", "q4_k_m"}));
  EXPECT_EQ(checkpoint->at("token_embd.weight").dtype, DType::kQ6K);
  EXPECT_EQ(checkpoint->at("blk.0.attn_q.weight").dtype, DType::kQ4K);
  EXPECT_EQ(checkpoint->at("blk.5.ffn_down.weight").dtype, DType::kQ6K);
  EXPECT_EQ(checkpoint->at("blk.0.ffn_down.weight").dtype, DType::kQ4K);
  EXPECT_EQ(checkpoint->at("per_layer_model_proj.weight").dtype, DType::kBF16);
  EXPECT_EQ(
      checkpoint->at("blk.0.proj.weight").dtype, DType::kQ5_0
  );  // 32 columns are no whole super-block
  EXPECT_EQ(checkpoint->at("blk.0.attn_norm.weight").dtype, DType::kF32);
}

TEST(Synth, FoldersOfSafetensorsPairWithThemselvesAndWithGguf) {
  const TemporaryDirectory directory;
  const std::string target = synth(directory, "target", {"--format", "safetensors"});
  const std::string drafter =
      synth(directory, "drafter", {"--format", "safetensors", "--kind", "drafter"});
  expect_verified(target, drafter);
  expect_verified(target, synth(directory, "d.gguf", {"--kind", "drafter"}));
}

TEST(Synth, SameSeedSameBytesOtherSeedOtherBytes) {
  const TemporaryDirectory directory;
  const std::string first = read_text(synth(directory, "a", {"--kind", "drafter"}));
  EXPECT_EQ(first, read_text(synth(directory, "b", {"--kind", "drafter", "--seed", "1"})));
  EXPECT_NE(first, read_text(synth(directory, "c", {"--kind", "drafter", "--seed", "2"})));
}

TEST(EmbeddingScale, IsMeasuredOnceAndStoredBesideTheDrafter) {
  const TemporaryDirectory directory;
  const std::string target = synth(directory, "t.gguf", {});
  const std::string drafter = synth(directory, "d.gguf", {"--kind", "drafter"});
  const std::vector<std::string> run = {
      "run", "-m", target, "-md", drafter, "-p", "abc", "--temp", "0", "-n", "8", "-t", "1"};
  EXPECT_THAT(run_octet(run).err, testing::HasSubstr("measured now, stored in"));
  const std::string stored = directory.file("d.gguf.side.json");
  EXPECT_GT(parse_json(bytes_of(read_text(stored))).find_number("embedding_scale").value(), 0.0);
  EXPECT_THAT(run_octet(run).err, testing::HasSubstr("measured before, stored in"));
  // What was measured with another drafter or another target says nothing about this pair.
  const std::string measured = read_text(stored);
  synth(directory, "d.gguf", {"--kind", "drafter", "--seed", "5"});
  EXPECT_THAT(run_octet(run).err, testing::HasSubstr("measured now, stored in"));
  EXPECT_NE(read_text(stored), measured);
  synth(directory, "t.gguf", {"--seed", "5"});
  EXPECT_THAT(run_octet(run).err, testing::HasSubstr("measured now, stored in"));
  EXPECT_THAT(run_octet(run).err, testing::HasSubstr("measured before, stored in"));
  directory.write("d.gguf.side.json", "{\"embedding_scale\": -1}");
  const ProgramResult refused = run_octet(run);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("d.gguf.side.json"));
}

}  // namespace
}  // namespace octet::test
