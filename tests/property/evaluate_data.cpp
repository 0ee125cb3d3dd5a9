// Data that a target writes: its bytes depend on prompts and settings alone, whatever ended a run
// before.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/evaluate/data_outputs.h"
#include "octet/evaluate/feature_file.h"
#include "octet/evaluate/generate_data.h"
#include "support/random_checkpoint.h"
#include "support/recorded_data.h"

namespace octet::test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Made {
  std::string lines;
  std::string features;
  DataResult result;
};

Made made(const DataRequest& request) {
  Made out;
  out.result = make(request);
  out.lines = read_text(request.output);
  out.features = read_text(request.feature_output);
  std::filesystem::remove(request.output);
  std::filesystem::remove(request.feature_output);
  return out;
}

TEST(GenerateData, BytesDependOnSeedAndPromptsAlone) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  const Made first = made(request);
  EXPECT_EQ(first.result.replies, 9);
  EXPECT_THAT(first.lines, HasSubstr("\"thinking\":true"));
  EXPECT_THAT(first.lines, HasSubstr("\"thinking\":false"));
  // Concurrency and drafting change nothing.
  request.concurrency = 3;
  request.draft_max = 0;
  const Made second = made(request);
  EXPECT_EQ(second.lines, first.lines);
  EXPECT_TRUE(second.features == first.features);
  request.sampling.seed = 12;
  EXPECT_NE(made(request).lines, first.lines);
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(GenerateData, ShardsTogetherAreTheWhole) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  std::vector<std::string> whole = split_lines(made(request).lines);
  std::vector<std::string> parts;
  for (int64_t shard = 1; shard <= 3; ++shard) {
    request.shard = shard;
    request.shards = 3;
    for (std::string& line : split_lines(made(request).lines)) {
      parts.push_back(std::move(line));
    }
  }
  std::sort(whole.begin(), whole.end());
  std::sort(parts.begin(), parts.end());
  EXPECT_EQ(parts, whole);
}

/// Conversations that are whole in the first `length` bytes.
int64_t conversations_in(const std::string& lines, size_t length) {
  int64_t count = 0;
  size_t at = 0;
  for (const std::string& line : split_lines(lines)) {
    at += line.size() + 1;
    count += at <= length && line.find("\"last\":true") != std::string::npos ? 1 : 0;
  }
  return count;
}

TEST(GenerateData, GoesOnFromWhateverAnEarlierRunLeft) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  request.concurrency = 2;
  const Made whole = made(request);
  const std::string lines = request.output + ".partial";
  const std::string features = request.feature_output + ".partial";
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomNumbers random(seed);
    // Both files as a kill may leave them: each cut anywhere.
    const auto kept_lines = static_cast<size_t>(random.integer(0, std::ssize(whole.lines)));
    const auto kept_features =
        static_cast<size_t>(random.integer(0, std::ssize(whole.features) - 24));
    directory.write("data.jsonl.partial", whole.lines.substr(0, kept_lines));
    directory.write("data.features.partial", whole.features.substr(0, kept_features));
    const Made again = made(request);
    EXPECT_EQ(again.result.resumed_conversations, conversations_in(whole.lines, kept_lines));
    EXPECT_EQ(again.lines, whole.lines);
    EXPECT_TRUE(again.features == whole.features);
    EXPECT_FALSE(std::filesystem::exists(lines));
    EXPECT_FALSE(std::filesystem::exists(features));
  }
  directory.write("data.jsonl.partial", whole.lines.substr(0, whole.lines.size() / 2));
  request.max_tokens = 41;
  try {
    make(request);
    FAIL() << "those settings are others";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_THAT(error.what(), HasSubstr("other prompts or settings"));
  }
  EXPECT_FALSE(std::filesystem::exists(request.output));
}

TEST(GenerateData, FeaturesAreMadeForRepliesThatAreThere) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  const Made whole = made(request);
  // Of a run without features: all its replies are kept.
  for (const size_t kept : {whole.lines.size() / 3, whole.lines.size()}) {
    directory.write("data.jsonl.partial", whole.lines.substr(0, kept));
    const Made again = made(request);
    EXPECT_EQ(again.result.resumed_conversations, conversations_in(whole.lines, kept));
    EXPECT_EQ(again.lines, whole.lines);
    EXPECT_TRUE(again.features == whole.features);
  }
}

TEST(GenerateData, LinesAloneAreTakenUpToo) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  const Made whole = made(request);
  request.feature_output.clear();
  const size_t kept = whole.lines.size() / 2;
  directory.write("data.jsonl.partial", whole.lines.substr(0, kept));
  const DataResult result = make(request);
  EXPECT_EQ(result.resumed_conversations, conversations_in(whole.lines, kept));
  EXPECT_EQ(result.replies, whole.result.replies);
  EXPECT_EQ(read_text(request.output), whole.lines);
}

/// Both files of `made` under these names, and a run.
Made taken_up(
    const TemporaryDirectory& directory,
    const DataRequest& request,
    const std::pair<std::string, std::string>& lines,
    const std::pair<std::string, std::string>& features
) {
  directory.write(lines.first, lines.second);
  directory.write(features.first, features.second);
  return made(request);
}

TEST(GenerateData, GoesOnFromEveryPlaceBetweenTheLastReplyAndBothNames) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  const DataRequest request = request_for(directory, std::span(prompts).first(3), 1.0F);
  const Made whole = made(request);
  // The end of the features is there, or a part of it, and they have no name.
  for (const size_t missing : {0U, 1U, 23U}) {
    const Made again = taken_up(
        directory,
        request,
        {"data.jsonl.partial", whole.lines},
        {"data.features.partial", whole.features.substr(0, whole.features.size() - missing)}
    );
    EXPECT_EQ(again.result.resumed_conversations, 3);
    EXPECT_EQ(again.lines, whole.lines);
    EXPECT_TRUE(again.features == whole.features);
  }
  // They have their name, the lines have not.
  EXPECT_FALSE(named_by_half(request.output, request.feature_output));
  directory.write("data.jsonl.partial", whole.lines);
  directory.write("data.features", whole.features);
  EXPECT_TRUE(named_by_half(request.output, request.feature_output));
  const Made again = made(request);
  EXPECT_EQ(again.result.resumed_conversations, 3);
  EXPECT_EQ(again.result.tokens, 0);
  EXPECT_EQ(again.lines, whole.lines);
  EXPECT_TRUE(again.features == whole.features);
  EXPECT_FALSE(std::filesystem::exists(directory.file("data.features.partial")));
  // Whatever else has their name stays as it is.
  const Made other = made(request_for(directory, std::span(prompts).first(2), 1.0F));
  for (const std::string& foreign : {other.features, std::string("notes")}) {
    directory.write("data.jsonl.partial", whole.lines);
    directory.write("data.features", foreign);
    EXPECT_THROW(make(request), Error);
    EXPECT_TRUE(read_text(request.feature_output) == foreign);
    EXPECT_EQ(read_text(directory.file("data.jsonl.partial")), whole.lines);
  }
}

TEST(GenerateData, RefusesFilesThatItDidNotBeginAndLeavesThemAlone) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  const Made whole = made(request);
  const std::string lines = directory.file("data.jsonl.partial");
  const std::string features = directory.file("data.features.partial");
  DataRequest other = request;
  other.feature_type = FeatureType::kBF16;
  const std::string other_features = made(other).features;
  other = request;
  other.sampling.seed = 12;
  const std::string other_lines = made(other).lines;
  const std::string some = whole.lines.substr(0, whole.lines.size() / 2);
  const struct {
    std::string lines;
    std::string features;
  } cases[] = {
      {"{\"text\":\"a diary\"}\n" + whole.lines, ""},
      {"a diary", ""},
      {"{\"prompt\":1", ""},
      {other_lines.substr(0, 200), ""},
      {whole.lines + "{\"prompt\":7", ""},
      {some, "a diary"},
      {some, other_features},
      {"", other_features},
      {"", other_features.substr(0, 14)},
      {"", std::string(300, 'x')},
  };
  for (const auto& [found_lines, found_features] : cases) {
    SCOPED_TRACE(found_lines.substr(0, 20) + " / " + found_features.substr(0, 8));
    directory.write("data.jsonl.partial", found_lines);
    directory.write("data.features.partial", found_features);
    try {
      make(request);
      FAIL() << "it is somebody's";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch) << error.what();
    }
    EXPECT_EQ(read_text(lines), found_lines);
    EXPECT_TRUE(read_text(features) == found_features);
    EXPECT_FALSE(std::filesystem::exists(request.output));
  }
  // A shard does not go on from more prompts than its own.
  DataRequest shard = request;
  shard.shards = 7;
  directory.write("data.jsonl.partial", whole.lines);
  directory.write("data.features.partial", "");
  EXPECT_THROW(make(shard), Error);
  EXPECT_EQ(read_text(lines), whole.lines);
}

TEST(GenerateData, SettingsAreTheSameWhereBytesAreAndOnlyThere) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  const DataRequest request = request_for(directory, prompts, 1.0F);
  const ChatTemplate bolt(BuiltinTemplate::kBolt);
  const auto digest = [&](const DataRequest& asked,
                          const EngineOptions& options,
                          const ChatTemplate& chat_template) {
    const Engine engine(*pair().target, *pair().drafter, pair().tokenizer, options);
    return settings_digest(asked, engine, chat_template);
  };
  const EngineOptions options = engine_options(2);
  const uint64_t plain = digest(request, options, bolt);
  DataRequest faster = request;
  faster.shard = 2;
  faster.shards = 3;
  faster.draft_max = 0;
  faster.concurrency = 2;
  EXPECT_EQ(digest(faster, engine_options(3), bolt), plain);

  EngineOptions smaller_cache = options;
  smaller_cache.kv_type = KvType::kQ8;
  EXPECT_NE(digest(request, smaller_cache, bolt), plain);
  EngineOptions shorter = options;
  shorter.context_length = 512;
  EXPECT_NE(digest(request, shorter, bolt), plain);
  EXPECT_NE(digest(request, options, ChatTemplate(BuiltinTemplate::kGemma4)), plain);
  DataRequest rounded = request;
  rounded.arithmetic = "cpu/portable w4a4";
  EXPECT_NE(digest(rounded, options, bolt), plain);
}

/// Fails as an engine without memory does.
class FailingDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "failing"; }
  int max_drafts() const override { return 7; }
  std::unique_ptr<DraftState> new_state(int64_t /*positions*/) const override {
    return std::make_unique<DraftState>();
  }
  void propose(std::span<DraftTask> /*tasks*/) override {
    throw Error(ErrorKind::kResourceExhausted, "out of memory");
  }
};

TEST(GenerateData, AFailingRunIsNoUnanswerablePrompt) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 1.0F);
  FailingDrafter drafter;
  for (const BadLines unanswerable : {BadLines::kRefuse, BadLines::kSkip}) {
    request.unanswerable = unanswerable;
    try {
      make(request, drafter);
      FAIL() << "every draft fails";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kResourceExhausted);
      EXPECT_THAT(error.what(), HasSubstr("prompt 1 ('0') got no reply: out of memory"));
    }
    EXPECT_FALSE(std::filesystem::exists(request.output));
    EXPECT_THAT(read_text(directory.file("data.jsonl.partial")), Not(HasSubstr("error")));
  }
  // Mended, it goes on to what it would have been.
  const Made mended = made(request);
  EXPECT_EQ(mended.lines, made(request).lines);
}

TEST(GenerateData, PromptsThatDoNotFitAreRefusedOrReported) {
  const TemporaryDirectory directory;
  std::vector<SuitePrompt> prompts = some_prompts();
  prompts[1].turns = {std::string(60'000, 'x')};
  DataRequest request = request_for(directory, prompts, 0.0F);
  EXPECT_THROW(make(request), Error);
  EXPECT_FALSE(std::filesystem::exists(request.output));
  request.unanswerable = BadLines::kSkip;
  const Made skipped = made(request);
  ASSERT_EQ(skipped.result.unanswered.size(), 1U);
  EXPECT_EQ(skipped.result.unanswered[0].prompt, 1);
  EXPECT_EQ(skipped.result.replies, 8);
  EXPECT_THAT(skipped.lines, HasSubstr("\"error\":"));
}

}  // namespace
}  // namespace octet::test
