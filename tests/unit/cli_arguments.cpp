#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/cli/arguments.h"
#include "octet/cli/memory_figures.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"

namespace octet::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <typename T>
T parse_as(const std::vector<std::string>& arguments) {
  return std::get<T>(parse_arguments(arguments));
}

ServeArguments serve_with_file(const std::string& file, std::vector<std::string> more) {
  const test::TemporaryDirectory directory;
  std::vector<std::string> arguments = {"serve", "--config", directory.write("conf", file)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return parse_as<ServeArguments>(arguments);
}

// The command line wins under whatever name it has the flag.
TEST(Arguments, TheCommandLineWinsOverTheFile) {
  const std::string file =
      "model = file\ndraft-model = file\nctx-size = 2048\npredict = 7\nparallel = 3\nport = 1\n";
  const auto own =
      serve_with_file(file, {"-m", "A", "-md", "B", "-c", "4096", "-n9", "-np", "2", "--port=5"});
  EXPECT_EQ(own.pair.model, "A");
  EXPECT_EQ(own.pair.draft_model, "B");
  EXPECT_EQ(own.pair.context, 4096);
  EXPECT_EQ(own.max_tokens, 9);
  EXPECT_EQ(own.parallel, 2);
  EXPECT_EQ(own.port, 5);
  const auto files = serve_with_file(file, {});
  EXPECT_EQ(files.pair.model, "file");
  EXPECT_EQ(files.pair.context, 2048);
  EXPECT_EQ(files.max_tokens, 7);
  EXPECT_EQ(files.port, 1);
}

TEST(Arguments, ACommentOfAFileStandsAlone) {
  const auto serve = serve_with_file(
      "# all of it\n"
      "model = a#b.gguf\n"
      "draft-model = d   # the drafter\n"
      "api-key = \"s3cr#t # long\"\t# the key\n"
      "alias = x# y\n"
      "  # and nothing else\n",
      {}
  );
  EXPECT_EQ(serve.pair.model, "a#b.gguf");
  EXPECT_EQ(serve.pair.draft_model, "d");
  EXPECT_EQ(serve.api_keys, std::vector<std::string>{"s3cr#t # long"});
  EXPECT_EQ(serve.name, "x# y");
}

TEST(Arguments, FamiliarFlagsOfRun) {
  const auto run = parse_as<RunArguments>(
      {"run",
       "-m",
       "t",
       "-md",
       "d",
       "-p",
       "x",
       "-n",
       "9",
       "-c",
       "77",
       "-t",
       "3",
       "--temp",
       "0.5",
       "--top-k",
       "4",
       "--top-p",
       "0.9",
       "--min-p",
       "0.1",
       "--seed",
       "18446744073709551615",
       "--draft-max",
       "0",
       "--kv-type",
       "f32",
       "--stop",
       "a",
       "--stop",
       "b c",
       "--logit-bias",
       "3=-1"}
  );
  EXPECT_EQ(run.pair.model, "t");
  EXPECT_EQ(run.pair.draft_model, "d");
  EXPECT_EQ(run.prompt, "x");
  EXPECT_EQ(run.reply.max_tokens, 9);
  EXPECT_EQ(run.pair.context, 77);
  EXPECT_EQ(run.pair.threads, 3);
  EXPECT_FLOAT_EQ(run.reply.sampling.temperature.value(), 0.5F);
  EXPECT_EQ(run.reply.sampling.top_k, 4);
  EXPECT_FLOAT_EQ(run.reply.sampling.top_p.value(), 0.9F);
  EXPECT_FLOAT_EQ(run.reply.sampling.min_p.value(), 0.1F);
  EXPECT_EQ(run.reply.sampling.seed, UINT64_MAX);
  EXPECT_EQ(run.reply.draft_max, 0);
  EXPECT_EQ(run.pair.kv_type, KvType::kF32);
  EXPECT_EQ(run.reply.stop_strings, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(run.reply.sampling.logit_bias, (std::vector<std::string>{"3=-1"}));
}

TEST(Arguments, DraftPolicyOfRepliesAndOfAServer) {
  EXPECT_TRUE(parse_as<RunArguments>({"run", "-m", "t"}).reply.adapt_drafts);
  EXPECT_FALSE(
      parse_as<RunArguments>({"run", "-m", "t", "--draft-policy", "fixed"}).reply.adapt_drafts
  );
  EXPECT_TRUE(parse_as<ServeArguments>({"serve", "-m", "t"}).adapt_drafts);
  EXPECT_FALSE(
      parse_as<ServeArguments>({"serve", "-m", "t", "--draft-policy", "fixed"}).adapt_drafts
  );
}

TEST(Arguments, MemoryFlags) {
  const auto run = parse_as<RunArguments>(
      {"run", "-m", "t", "--kv-type", "Q8_0", "--memory-limit", "3.6GB", "--no-mmap", "--mlock"}
  );
  EXPECT_EQ(run.pair.kv_type, KvType::kQ8);
  EXPECT_EQ(run.pair.memory_limit, 3'600'000'000);
  EXPECT_EQ(run.pair.tables, TablePlace::kMemory);
  EXPECT_TRUE(run.pair.lock_memory);
  const auto plain = parse_as<RunArguments>({"run", "-m", "t"});
  EXPECT_FALSE(plain.pair.memory_limit.has_value());
  EXPECT_EQ(plain.pair.tables, TablePlace::kFile);
  EXPECT_FALSE(plain.pair.lock_memory);
}

TEST(Arguments, SizesHaveUnits) {
  EXPECT_EQ(parse_size("123"), 123);
  EXPECT_EQ(parse_size("512M"), 512'000'000);
  EXPECT_EQ(parse_size("1.5k"), 1500);
  EXPECT_EQ(parse_size("4GiB"), int64_t{4} << 30);
  for (const char* wrong : {"", "G", "-1G", "0", "3 GB", "4g", "nan", "inf", "1e30", "0x10"}) {
    EXPECT_THROW(parse_size(wrong), Error) << wrong;
  }
}

TEST(Arguments, WhatIsNotSaidStaysUnset) {
  const auto run = parse_as<RunArguments>({"run", "--model", "t"});
  EXPECT_FALSE(run.prompt.has_value());
  EXPECT_FALSE(run.reply.sampling.temperature.has_value());
  EXPECT_FALSE(run.reply.sampling.seed.has_value());
  EXPECT_FALSE(run.reply.draft_max.has_value());
  EXPECT_FALSE(run.pair.embedding_scale.has_value());
  EXPECT_EQ(run.pair.kv_type, KvType::kBF16);
}

TEST(Arguments, SpellingsOfTheDrafter) {
  for (const std::vector<std::string>& spelling :
       {std::vector<std::string>{"-md", "d"},
        {"-md=d"},
        {"--draft-model", "d"},
        {"--draft-model=d"}}) {
    std::vector<std::string> arguments = {"chat", "-m", "t"};
    arguments.insert(arguments.end(), spelling.begin(), spelling.end());
    EXPECT_EQ(parse_as<ChatArguments>(arguments).pair.draft_model, "d");
  }
}

TEST(Arguments, TextThatLooksLikeAFlagIsAValueAfterAnEqualsSign) {
  EXPECT_EQ(parse_as<RunArguments>({"run", "-m", "t", "--prompt=--help me"}).prompt, "--help me");
}

TEST(Arguments, EmbeddingScaleIsANumberOrAuto) {
  EXPECT_FLOAT_EQ(
      parse_as<RunArguments>({"run", "-m", "t", "--embedding-scale", "16"})
          .pair.embedding_scale.value(),
      16.0F
  );
  EXPECT_FALSE(parse_as<RunArguments>({"run", "-m", "t", "--embedding-scale", "auto"})
                   .pair.embedding_scale.has_value());
  for (const char* bad : {"-1", "0", "16x", ""}) {
    EXPECT_THROW(
        parse_arguments(std::vector<std::string>{"run", "-m", "t", "--embedding-scale", bad}), Error
    ) << bad;
  }
}

TEST(Arguments, SynthPresetsAndRecipes) {
  const auto synth = parse_as<SynthArguments>(
      {"synth", "--preset", "bolt-e4b", "--kind", "drafter", "--type", "q4_1", "-o", "x"}
  );
  EXPECT_EQ(synth.preset, SynthPreset::kBoltE4b);
  EXPECT_EQ(synth.kind, SynthKind::kDrafter);
  EXPECT_EQ(synth.recipe, SynthRecipe::kQ4_1);
}

std::string complaint_about(const std::vector<std::string>& arguments) {
  return test::error_message([&] { parse_arguments(arguments); });
}

TEST(Arguments, ALimitOfPromptsNeedsPrompts) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"verify", "-m", "t"},
        {"bench", "policy", "-m", "t", "-md", "d"},
        {"compare", "a", "b", "--target", "t"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--limit", "3"});
    EXPECT_THAT(complaint_about(arguments), HasSubstr("--prompts")) << command.front();
    arguments.insert(arguments.end(), {"--prompts", "p.jsonl"});
    EXPECT_EQ(complaint_about(arguments), "") << command.front();
  }
}

TEST(Arguments, BenchCycleTakesOnlyWhatItUses) {
  EXPECT_THAT(
      complaint_about({"bench", "cycle", "-m", "t", "-c", "4096"}),
      AllOf(HasSubstr("not expected"), HasSubstr("-c"))
  );
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--json"}, {"-m", "t"}, {"--rounds", "3"}}) {
    std::vector<std::string> arguments = {"bench", "cycle", "--compare", "a", "b"};
    EXPECT_EQ(complaint_about(arguments), "");
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_THAT(complaint_about(arguments), HasSubstr("--compare: reads two results"))
        << more.front();
  }
}

TEST(Arguments, ErrorsAreOneLine) {
  try {
    parse_arguments(std::vector<std::string>{"run", "--nonsense"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace octet::cli
