// Recorded features: what is written is read again, what is damaged is refused, and a replay on
// them finds the acceptance of real drafting.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/evaluate/feature_file.h"
#include "octet/evaluate/feature_replay.h"
#include "octet/evaluate/generate_data.h"
#include "octet/evaluate/hold_conversation.h"
#include "octet/models/gemma4/lent_vocabulary.h"
#include "support/feature_seeds.h"
#include "support/recorded_data.h"
#include "support/same_acceptance.h"
#include "support/stored_head.h"
#include "support/temporary_directory.h"

namespace octet::test {
namespace {

using testing::HasSubstr;

/// Columns of record i by tap, in the order asked for.
void expect_columns(const FeatureFile& file, const FeatureSample& sample, size_t i) {
  const std::vector<int> taps = {sample.header.taps[1], sample.header.taps[0]};
  const std::vector<float> values = file.features(static_cast<int64_t>(i), taps);
  const int64_t hidden = sample.header.hidden;
  const int64_t rows = std::ssize(sample.records[i].tokens) - 1;
  ASSERT_EQ(std::ssize(values), rows * 2 * hidden);
  const float tolerance = sample.header.type == FeatureType::kF32 ? 0.0F : 1.0F / 256.0F;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < 2 * hidden; ++c) {
      const int64_t column = c < hidden ? hidden + c : c - hidden;
      const auto place = static_cast<size_t>(r * sample.header.width() + column);
      const float expected = sample.values[i][place];
      const float value = values[static_cast<size_t>(r * 2 * hidden + c)];
      ASSERT_NEAR(value, expected, tolerance * std::fabs(expected));
    }
  }
}

TEST(FeatureFile, ReadsWhatWasWritten) {
  for (const FeatureType type : {FeatureType::kBF16, FeatureType::kF32}) {
    const FeatureSample sample = feature_sample(type);
    const FeatureFile file = FeatureFile::parse(bytes_of(sample.bytes), "sample");
    EXPECT_TRUE(file.header() == sample.header);
    EXPECT_EQ(file.header().taps, sample.header.taps);
    EXPECT_EQ(file.header().sampling.top_k, 5);
    ASSERT_EQ(file.records().size(), sample.records.size());
    for (size_t i = 0; i < sample.records.size(); ++i) {
      const FeatureRecord& found = file.records()[i];
      const FeatureRecord& written = sample.records[i];
      EXPECT_EQ(found.prompt, written.prompt);
      EXPECT_EQ(found.turn, written.turn);
      EXPECT_EQ(found.thinking, written.thinking);
      EXPECT_EQ(found.seed, written.seed);
      EXPECT_EQ(found.max_tokens, written.max_tokens);
      EXPECT_EQ(found.prompt_tokens, written.prompt_tokens);
      EXPECT_EQ(found.tokens, written.tokens);
      expect_columns(file, sample, i);
    }
    try {
      file.features(0, std::vector<int>{99});
      FAIL() << "that layer was not recorded";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
      EXPECT_THAT(error.what(), HasSubstr("layer 99"));
    }
  }
}

TEST(FeatureFile, RefusesWhatIsCutOrDamagedAndSalvagesWholeRecords) {
  const FeatureSample sample = feature_sample(FeatureType::kBF16);
  const FeatureFile whole = FeatureFile::parse(bytes_of(sample.bytes), "sample");
  for (size_t length = 0; length < sample.bytes.size(); ++length) {
    const std::string cut = sample.bytes.substr(0, length);
    EXPECT_THROW(FeatureFile::parse(bytes_of(cut), "cut"), Error) << length;
    if (length < whole.end_of(-1)) {
      EXPECT_THROW(FeatureFile::salvage(bytes_of(cut), "cut"), Error) << length;
      continue;
    }
    const FeatureFile saved = FeatureFile::salvage(bytes_of(cut), "cut");
    int64_t expected = 0;
    while (expected < std::ssize(whole.records()) && whole.end_of(expected) <= length) {
      ++expected;
    }
    ASSERT_EQ(std::ssize(saved.records()), expected) << length;
    EXPECT_EQ(saved.end_of(expected - 1), whole.end_of(expected - 1));
  }
  for (size_t at = 0; at < sample.bytes.size(); ++at) {
    std::string damaged = sample.bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_THROW(FeatureFile::parse(bytes_of(damaged), "damaged"), Error) << at;
  }
  EXPECT_THROW(FeatureFile::parse(bytes_of(sample.bytes + "x"), "longer"), Error);
  try {
    FeatureFile::parse(bytes_of("GGUF and more"), "name");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("name: is no file of recorded features"));
  }
}

TEST(FeatureFile, TwoFlipsOfTheHighestBitDoNotCancel) {
  for (const FeatureType type : {FeatureType::kBF16, FeatureType::kF32}) {
    const FeatureSample sample = feature_sample(type);
    const FeatureFile whole = FeatureFile::parse(bytes_of(sample.bytes), "sample");
    const std::pair<uint64_t, uint64_t> parts[] = {
        {0, whole.end_of(-1)}, {whole.end_of(-1), whole.end_of(0)}};
    for (const auto& [begin, end] : parts) {
      for (uint64_t a = begin + 7; a + 8 < end; a += 8) {
        for (uint64_t b = a + 8; b + 8 < end; b += 8) {
          std::string damaged = sample.bytes;
          for (const uint64_t at : {a, b}) {
            damaged[at] = static_cast<char>(damaged[at] ^ 0x80);
          }
          EXPECT_THROW(FeatureFile::parse(bytes_of(damaged), "damaged"), Error) << a << ", " << b;
        }
      }
    }
  }
}

/// Acceptance of real drafting on these prompts, with and without thinking.
struct RealDrafting {
  AcceptanceStatistics all;
  AcceptanceStatistics thinking;
};

RealDrafting draft_for_real(const DataRequest& request, Drafter& drafter = *pair().drafter) {
  Engine engine(*pair().target, drafter, pair().tokenizer, engine_options(1));
  const ChatTemplate chat_template(BuiltinTemplate::kBolt);
  RealDrafting found;
  for (int64_t i = 0; i < std::ssize(request.prompts); ++i) {
    ConversationSettings settings;
    settings.sampling = request.sampling;
    settings.sampling.seed += static_cast<uint64_t>(i);
    settings.thinking = wants_thinking(request.sampling.seed, i, request.thinking_share);
    settings.max_tokens = request.max_tokens;
    settings.draft_max = 7;
    const auto turns = hold_conversation(
        engine, chat_template, pair().tokenizer, request.prompts[static_cast<size_t>(i)], settings
    );
    for (const ConversationTurn& turn : turns) {
      found.all.add(turn.reply->report.acceptance);
      if (settings.thinking) {
        found.thinking.add(turn.reply->report.acceptance);
      }
    }
  }
  return found;
}

FeatureReplay replayed(
    const FeatureFile& file,
    const std::shared_ptr<const Checkpoint>& drafter,
    bool attribute,
    std::shared_ptr<const Checkpoint> draft_head = nullptr
) {
  LentVocabulary vocabulary(pair().target_checkpoint, *pair().ops);
  FeatureReplayRequest request{
      file,
      drafter,
      {},
      nullptr,
      *pair().ops,
      vocabulary,
      pair().tokenizer->stop_ids(),
      pair().tokenizer->suppressed_ids()};
  request.attribute = attribute;
  request.draft_head = std::move(draft_head);
  return replay_features(request, [](const std::string&) {});
}

TEST(FeatureReplay, EqualsRealDraftingOnTheSameText) {
  const std::vector<SuitePrompt> prompts = some_prompts();
  for (const float temperature : {0.0F, 1.0F}) {
    SCOPED_TRACE(temperature);
    const TemporaryDirectory directory;
    DataRequest request = request_for(directory, prompts, temperature);
    const RealDrafting real = draft_for_real(request);
    ASSERT_GT(real.all.accepted, 50);
    const FeatureFile exact = recorded(request);
    const FeatureReplay found = replayed(exact, pair().draft_checkpoint, false);
    expect_same(found.all, real.all);
    expect_same(found.thinking, real.thinking);
    std::filesystem::remove(request.output);
    std::filesystem::remove(request.feature_output);
    // Half the bytes, nearly the same drafts.
    request.feature_type = FeatureType::kBF16;
    const FeatureFile rounded = recorded(request);
    EXPECT_NEAR(
        replayed(rounded, pair().draft_checkpoint, false).all.mean_acceptance_length(),
        real.all.mean_acceptance_length(),
        0.1 * real.all.mean_acceptance_length()
    );
  }
}

TEST(FeatureReplay, ReadsDraftsFromAStoredHeadAsRealDraftingDoes) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  const DataRequest request = request_for(directory, prompts, 1.0F);
  const FeatureFile file = recorded(request);
  // Half of the tokens: drafts of the others are none.
  const LogicalTensor& whole = *pair().target->head_tensor();
  std::vector<TokenId> tokens;
  for (int64_t token = 0; token < whole.rows(); token += 2) {
    tokens.push_back(static_cast<TokenId>(token));
  }
  DrafterOptions options;
  options.draft_head = stored_head(whole, tokens, whole.dtype);
  DFlashDrafter drafter(
      load_drafter(pair().draft_checkpoint, *pair().ops, *pair().target, options),
      pair().target->final_softcap()
  );
  const RealDrafting real = draft_for_real(request, drafter);
  const auto found = replayed(file, pair().draft_checkpoint, false, options.draft_head);
  expect_same(found.all, real.all);
  EXPECT_LT(found.all.accepted, replayed(file, pair().draft_checkpoint, false).all.accepted);
}

/// The shipped drafter with one key changed, as a faulty converter would write it.
std::shared_ptr<Checkpoint> with_key(const std::string& key, MetadataValue value) {
  auto changed = std::make_shared<Checkpoint>(*pair().draft_checkpoint);
  changed->metadata.set(key, std::move(value));
  return changed;
}

const FeatureTrial& trial_named(const FeatureReplay& replay, const std::string& part) {
  for (const FeatureTrial& trial : replay.trials) {
    if (trial.name.find(part) != std::string::npos) {
      return trial;
    }
  }
  throw std::runtime_error("no trial is named " + part);
}

TEST(FeatureReplay, NamesWhatIsWrongWithADrafter) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  DataRequest request = request_for(directory, prompts, 0.0F);
  const std::vector<int> taps = request.taps;
  for (const int tap : taps) {
    for (const int beside : {tap - 1, tap + 1}) {
      if (beside >= 0 && beside < pair().target->shape().layers &&
          std::find(request.taps.begin(), request.taps.end(), beside) == request.taps.end()) {
        request.taps.push_back(beside);
      }
    }
  }
  const FeatureFile file = recorded(request);
  const FeatureReplay sound = replayed(file, pair().draft_checkpoint, true);
  EXPECT_EQ(sound.clearly_better(), nullptr);
  const auto ids = [](const std::vector<int>& layers) {
    return MetadataArray(std::vector<int32_t>(layers.begin(), layers.end()));
  };
  std::vector<int> reversed(taps.rbegin(), taps.rend());
  std::vector<int> lower = taps;
  for (int& tap : lower) {
    --tap;
  }
  const auto scale = pair().draft_checkpoint->metadata.find_number("dflash.embedding_scale");
  ASSERT_EQ(scale, 16.0) << "the square root of its hidden size";
  const struct {
    const char* expected;
    std::shared_ptr<Checkpoint> drafter;
  } faults[] = {
      {"taps in reverse order", with_key("dflash.target_layer_ids", ids(reversed))},
      {"taps one layer higher", with_key("dflash.target_layer_ids", ids(lower))},
      {"embedding scale 16", with_key("dflash.embedding_scale", 400.0F)},
  };
  int clear_faults = 0;
  for (const auto& fault : faults) {
    SCOPED_TRACE(fault.expected);
    const FeatureReplay found = replayed(file, fault.drafter, true);
    const FeatureTrial& mended = trial_named(found, fault.expected);
    expect_same(mended.found, sound.all);
    EXPECT_GT(mended.found.mean_acceptance_length(), found.all.mean_acceptance_length());
    // What costs little is not called clearly better: chance costs as much.
    const bool clear =
        mended.found.mean_acceptance_length() > 1.1 * found.all.mean_acceptance_length();
    EXPECT_EQ(found.clearly_better() != nullptr, clear);
    if (clear) {
      EXPECT_EQ(found.clearly_better()->name, mended.name);
    }
    clear_faults += clear ? 1 : 0;
  }
  EXPECT_GE(clear_faults, 2);

  // A window that is too narrow.
  const FeatureReplay narrow =
      replayed(file, with_key("dflash.attention.sliding_window", uint32_t{8}), true);
  const double before = narrow.all.mean_acceptance_length();
  EXPECT_GT(trial_named(narrow, "a window twice as wide").found.mean_acceptance_length(), before);
  EXPECT_GT(trial_named(narrow, "no window").found.mean_acceptance_length(), before);
  // With and without thoughts, beside each other.
  EXPECT_EQ(sound.thinking.steps + sound.speaking.steps, sound.all.steps);
  EXPECT_GT(sound.thinking.steps, 0);
  EXPECT_GT(sound.speaking.steps, 0);
}

/// A step drafted one token, which was accepted or not.
AcceptanceStatistics steps_of(int accepted, int refused) {
  AcceptanceStatistics statistics;
  for (int i = 0; i < accepted + refused; ++i) {
    SequenceStep step;
    step.drafted = 1;
    step.accepted = i < accepted ? 1 : 0;
    step.published = 1 + step.accepted;
    statistics.add(step);
  }
  return statistics;
}

TEST(FeatureReplay, NamesTheKindOfRepliesThatIsDraftedBadly) {
  FeatureReplay replay;
  replay.thinking = steps_of(10, 90);
  replay.speaking = steps_of(80, 20);
  EXPECT_EQ(replay.clearly_worse_kind(), &replay.thinking);
  replay.thinking = steps_of(90, 10);
  replay.speaking = steps_of(30, 70);
  EXPECT_EQ(replay.clearly_worse_kind(), &replay.speaking);
  replay.speaking = steps_of(80, 20);  // 1.8 against 1.9
  EXPECT_EQ(replay.clearly_worse_kind(), nullptr);
  replay.speaking = steps_of(0, 20);  // too few to say
  EXPECT_EQ(replay.clearly_worse_kind(), nullptr);
}

TEST(FeatureReplay, HoldsAnotherTypeOfTheDrafterBesideIt) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  const DataRequest request = request_for(directory, prompts, 0.0F);
  const FeatureFile file = recorded(request);
  // Worse than any type: without its fusion.
  auto broken = std::make_shared<Checkpoint>();
  broken->path = "broken.gguf";
  broken->metadata = pair().draft_checkpoint->metadata;
  std::vector<std::byte> zeros;
  for (LogicalTensor tensor : pair().draft_checkpoint->tensors()) {
    if (tensor.name == "fc.weight") {
      zeros.resize(tensor.data.size());
      tensor.data = zeros;
    }
    broken->add(tensor);
  }
  LentVocabulary vocabulary(pair().target_checkpoint, *pair().ops);
  FeatureReplayRequest replay{
      file,
      broken,
      {},
      pair().draft_checkpoint,
      *pair().ops,
      vocabulary,
      pair().tokenizer->stop_ids(),
      pair().tokenizer->suppressed_ids()};
  replay.attribute = false;
  const FeatureReplay found = replay_features(replay, [](const std::string&) {});
  ASSERT_EQ(found.trials.size(), 1U);
  EXPECT_EQ(found.clearly_better(), &found.trials[0]);
  EXPECT_THAT(found.trials[0].name, HasSubstr("bolt-tiny-dflash-q8_0.gguf"));
  expect_same(found.trials[0].found, replayed(file, pair().draft_checkpoint, false).all);
}

TEST(FeatureReplay, AStrideDraftsThere) {
  const TemporaryDirectory directory;
  const std::vector<SuitePrompt> prompts = some_prompts();
  const DataRequest request = request_for(directory, std::span(prompts).first(2), 0.0F);
  const FeatureFile file = recorded(request);
  LentVocabulary vocabulary(pair().target_checkpoint, *pair().ops);
  FeatureReplayRequest replay{
      file, pair().draft_checkpoint, {}, nullptr, *pair().ops, vocabulary, {}, {}};
  replay.attribute = false;
  int64_t last_steps = 0;
  for (const int64_t stride : {8, 4, 1}) {
    replay.stride = stride;
    const int64_t steps = replay_features(replay, [](const std::string&) {}).all.steps;
    int64_t most = 0;
    for (const FeatureRecord& record : file.records()) {
      most += (std::ssize(record.tokens) - record.prompt_tokens - 1 + stride - 1) / stride;
    }
    EXPECT_LE(steps, most);
    EXPECT_GT(steps, last_steps);
    last_steps = steps;
  }
}

TEST(CheckpointDigest, TellsTargetsApart) {
  const uint64_t target = checkpoint_digest(*pair().target_checkpoint);
  EXPECT_EQ(target, checkpoint_digest(*pair().target_checkpoint));
  EXPECT_NE(target, checkpoint_digest(*pair().draft_checkpoint));
  Checkpoint changed = *pair().target_checkpoint;
  Checkpoint other;
  other.metadata = changed.metadata;
  std::vector<std::byte> bytes;
  for (LogicalTensor tensor : changed.tensors()) {
    if (bytes.empty()) {
      bytes.assign(tensor.data.begin(), tensor.data.end());
      bytes[0] ^= std::byte{1};
      tensor.data = bytes;
    }
    other.add(tensor);
  }
  EXPECT_NE(target, checkpoint_digest(other));
}

}  // namespace
}  // namespace octet::test
