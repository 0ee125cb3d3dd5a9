// Laws of training: a resumed run is the uninterrupted one to the bit, parts of a batch add up to
// the whole, blocks do not see each other or what lies behind their anchors, and what is learned is
// what runs.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "octet/base/error.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/train/training_run.h"
#include "support/conversions.h"
#include "support/drafter_forms.h"
#include "support/temporary_directory.h"
#include "support/tensor_rows.h"
#include "support/training_fixture.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

void expect_same_bits(const t::Parameters& a, const t::Parameters& b) {
  ASSERT_EQ(a.all().size(), b.all().size());
  for (size_t i = 0; i < a.all().size(); ++i) {
    EXPECT_TRUE(at::equal(a.all()[i].value, b.all()[i].value)) << a.all()[i].name;
  }
}

t::RunHooks silent() {
  t::RunHooks hooks;
  hooks.on_step = [](const t::StepReport&, const t::Pace&) {};
  hooks.on_validation = [](const t::Validation&, bool) {};
  return hooks;
}

TEST(Resuming, IsTheUninterruptedRunToTheBit) {
  constexpr int64_t kSteps = 7;
  for (const t::OptimizerKind kind : {t::OptimizerKind::kMuon, t::OptimizerKind::kAdamW}) {
    TrainingFixture fixture;
    const TemporaryDirectory directory;
    t::TrainerSettings settings = TrainingFixture::settings(kSteps);
    settings.optimizer.kind = kind;
    t::RunSettings run;
    run.description = "test";
    run.state_file = directory.file("state");
    run.save_every = 3;
    t::TrainingRecord empty;
    empty.steps_per_point = 2;

    const auto whole_task = fixture.task(t::Teacher::kDistribution);
    const std::vector<Tensor> initial = copied_values(whole_task->parameters());
    t::Trainer whole(*whole_task, settings, nullptr);
    t::RunSettings unsaved = run;
    unsaved.state_file.clear();
    const t::RunOutcome expected = t::run_training(whole, empty, unsaved, silent());
    EXPECT_FALSE(at::equal(whole_task->parameters().all()[0].value, initial[0]));

    const auto first_task = fixture.task(t::Teacher::kDistribution);
    t::Trainer first(*first_task, settings, nullptr);
    t::RunHooks interrupted = silent();
    struct Interruption {};
    interrupted.on_step = [](const t::StepReport& report, const t::Pace&) {
      if (report.step == 4) {
        throw Interruption();
      }
    };
    EXPECT_THROW(t::run_training(first, empty, run, interrupted), Interruption);

    const auto second_task = fixture.task(t::Teacher::kDistribution);
    t::Trainer second(*second_task, settings, nullptr);
    t::TrainingRecord restored = t::resume(second, run);
    EXPECT_EQ(second.next_step(), 3);
    const t::RunOutcome found = t::run_training(second, restored, run, silent());
    expect_same_bits(whole_task->parameters(), second_task->parameters());
    EXPECT_EQ(t::record_text(found.record), t::record_text(expected.record));
  }
}

// Whether a validation is a gain must not depend on an interruption before it.
TEST(Resuming, KeepsEveryDigitOfAValidation) {
  t::TrainingRecord record;
  record.validations = {{.step = 3, .value = 7.0 / 3.0, .by_position = {}}};
  EXPECT_EQ(t::parse_record(t::record_text(record)).validations.at(0).value, 7.0 / 3.0);
}

TEST(Resuming, RefusesTheStateOfAnotherRun) {
  TrainingFixture fixture;
  const TemporaryDirectory directory;
  const auto task = fixture.task();
  t::Trainer trainer(*task, TrainingFixture::settings(3), nullptr);
  trainer.save(directory.file("state"), "batch 4", "{}");
  try {
    trainer.restore(directory.file("state"), "batch 8");
    FAIL() << "restored";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_NE(std::string(error.what()).find("batch 4"), std::string::npos) << error.what();
  }
  EXPECT_THROW(trainer.restore(directory.write("other", "no state"), "batch 4"), Error);
  EXPECT_THROW(trainer.restore(directory.file("absent"), "batch 4"), Error);
}

TEST(Batches, PartsAddUpToTheWhole) {
  for (const t::Teacher teacher : {t::Teacher::kTokens, t::Teacher::kDistribution}) {
    TrainingFixture fixture;
    const auto whole = fixture.task(teacher);
    const auto parts = fixture.task(teacher);
    t::BatchSums expected = whole->accumulate({8, 4});
    t::BatchSums found = parts->accumulate({8, 1});
    found.add(parts->accumulate({9, 3}));
    EXPECT_NEAR(found.loss, expected.loss, 1e-4 * expected.loss);
    EXPECT_DOUBLE_EQ(found.weight, expected.weight);
    EXPECT_EQ(found.hits, expected.hits);
    EXPECT_EQ(found.judged, expected.judged);
    for (size_t i = 0; i < whole->parameters().all().size(); ++i) {
      const Tensor& a = whole->parameters().all()[i].value.grad();
      const Tensor& b = parts->parameters().all()[i].value.grad();
      ASSERT_TRUE(a.defined() && b.defined());
      EXPECT_LE(largest_difference(a, b), 1e-4 * (1.0 + at::abs(a).max().item<double>()))
          << whole->parameters().all()[i].name;
    }
  }
}

TEST(Batches, WeightsFallByPlaceInTheBlock) {
  TrainingFixture fixture;
  fixture.texts.resize(1);
  const auto task = fixture.task();
  const t::BatchSums sums = task->accumulate({0, 1});
  double expected = 0.0;
  for (size_t k = 0; k < sums.judged.size(); ++k) {
    expected += sums.judged[k] * std::exp(-static_cast<double>(k) / 4.0);
  }
  EXPECT_NEAR(sums.weight, expected, 1e-5 * expected);
  EXPECT_EQ(sums.judged[0], 8.0);  // every anchor has a token behind it
  EXPECT_TRUE(std::is_sorted(sums.judged.rbegin(), sums.judged.rend()));
}

TEST(Anchors, AreDistinctLearnedPlacesThatDependOnTheSampleAlone) {
  t::TrainingText text;
  text.tokens.assign(50, 5);
  text.first_learned = 12;
  std::set<int64_t> seen;
  for (int64_t sample = 0; sample < 200; ++sample) {
    const auto anchors = t::choose_anchors(text, 6, 3, sample);
    EXPECT_EQ(anchors, t::choose_anchors(text, 6, 3, sample));
    EXPECT_EQ(std::set(anchors.begin(), anchors.end()).size(), 6U);
    EXPECT_GE(anchors.front(), 12);
    EXPECT_LE(anchors.back(), 48);
    seen.insert(anchors.begin(), anchors.end());
  }
  EXPECT_EQ(seen.size(), 37U) << "some places are never chosen";
  EXPECT_EQ(t::choose_anchors(text, 100, 3, 0).size(), 37U);
  text.reply.assign(50, false);
  for (const size_t said : {10U, 11U, 12U, 13U, 14U, 30U, 40U, 41U}) {
    text.reply[said] = true;
  }
  // Both the anchor and what follows it are said, and learned.
  EXPECT_EQ(t::choose_anchors(text, 100, 3, 0), (std::vector<int64_t>{12, 13, 40}));
}

/// Row results must not depend on features at or behind the anchor, nor on other blocks.
TEST(Blocks, SeeTheirContextAndThemselvesAlone) {
  at::manual_seed(6);
  TrainingFixture fixture;
  const DFlashConfig config = read_dflash_config(*fixture.drafter_checkpoint);
  const Tensor table = t::decoded(fixture.target_checkpoint->at("token_embd.weight"));
  const t::DrafterNetwork network(config, table, 2.0, t::Precision::kFull);
  const auto parameters = t::initial_drafter(config, 7, t::InitialScale::kByFanIn);
  t::DraftBlocks blocks;
  blocks.features = at::randn({40, 64});
  blocks.feature_positions = at::cat({at::arange(25, at::kLong), at::arange(15, at::kLong)});
  blocks.anchor_positions = at::tensor({10, 20, 3}, at::kLong);
  blocks.anchor_rows = at::tensor({10, 20, 28}, at::kLong);
  blocks.anchor_tokens = at::tensor({7, 8, 9}, at::kLong);
  const int64_t drafts = config.block - 1;
  const Tensor expected = network.states(parameters, blocks).reshape({3, drafts, -1});

  t::DraftBlocks behind = blocks;
  behind.features = blocks.features.clone();
  behind.features.slice(0, 10, 25).add_(1.0);
  const Tensor moved = network.states(parameters, behind).reshape({3, drafts, -1});
  EXPECT_EQ(largest_difference(moved[0], expected[0]), 0.0);
  EXPECT_GT(largest_difference(moved[1], expected[1]), 0.0);
  EXPECT_EQ(largest_difference(moved[2], expected[2]), 0.0);

  t::DraftBlocks alone = blocks;
  alone.anchor_positions = blocks.anchor_positions.slice(0, 1, 2);
  alone.anchor_rows = blocks.anchor_rows.slice(0, 1, 2);
  alone.anchor_tokens = blocks.anchor_tokens.slice(0, 1, 2);
  EXPECT_LE(largest_difference(network.states(parameters, alone), expected[1]), 1e-5);
}

/// Weights as a folder holds them: matrices rounded to BF16, vectors as they are.
void expect_rounded(const t::Parameters& trained, const t::Parameters& written) {
  ASSERT_EQ(trained.all().size(), written.all().size());
  for (const t::Parameter& parameter : trained.all()) {
    Tensor expected = parameter.value.detach();
    if (parameter.is_matrix()) {
      expected = expected.to(at::kBFloat16).to(at::kFloat);
    }
    EXPECT_TRUE(at::equal(written.at(parameter.name), expected)) << parameter.name;
  }
}

/// The engine, which reads the folder, drafts what the trained weights draft before they were
/// written, and that is what the texts have.
void expect_engine_drafts_alike(
    const TrainingFixture& fixture, const t::Parameters& trained, const std::string& folder
) {
  TwoForms forms({fixture.target_checkpoint, open_checkpoint(folder)});
  expect_rounded(trained, forms.parameters());
  const t::NoGradient no_gradient;
  int64_t blocks = 0;
  int64_t drafts = 0;
  int64_t alike = 0;
  int64_t right = 0;
  for (const t::TrainingText& text : fixture.texts) {
    const TargetRun run = forms.run(text.tokens);
    for (int64_t anchor = text.first_learned; anchor + 1 < std::ssize(text.tokens); ++anchor) {
      const Tensor expected = forms.by_network(trained, run, text.tokens, {anchor})[0].argmax(1);
      const Tensor found = tensor_of(forms.by_engine(run, text.tokens, anchor)).argmax(1);
      ++blocks;
      drafts += found.size(0);
      alike += at::sum(found == expected).item<int64_t>();
      right += found[0].item<int64_t>() == text.tokens[static_cast<size_t>(anchor) + 1] ? 1 : 0;
    }
  }
  EXPECT_GT(static_cast<double>(alike), 0.97 * static_cast<double>(drafts));
  EXPECT_GT(static_cast<double>(right), 0.8 * static_cast<double>(blocks));
}

TEST(Learning, LossFallsAndTheWrittenDrafterDraftsAlike) {
  TrainingFixture fixture;
  const TemporaryDirectory directory;
  ThreadPool pool(1);
  const SmallTokenizer tokenizer(64);  // a folder has one
  Checkpoint with_tokenizer;
  tokenizer.add_to(with_tokenizer.metadata);
  const t::ModelFrame frame = t::drafter_frame(*fixture.drafter_checkpoint, with_tokenizer, 2.0F);
  for (const auto precision : {t::Precision::kFull, t::Precision::kBF16}) {
    const auto task = fixture.task(t::Teacher::kTokens, precision);
    t::Trainer trainer(*task, TrainingFixture::settings(60), nullptr);
    const double first = trainer.step().sums.mean_loss();
    t::StepReport last;
    while (!trainer.finished()) {
      last = trainer.step();
    }
    EXPECT_LT(last.sums.mean_loss(), 0.5 * first);
    EXPECT_GT(last.sums.accuracy(0), 0.8);
    EXPECT_GT(last.gradient_norm, 0.0);
    const std::string folder = directory.file(precision == t::Precision::kFull ? "f32" : "bf16");
    t::write_model_folder(task->parameters(), frame, folder, pool);
    expect_engine_drafts_alike(fixture, task->parameters(), folder);
  }
}

/// One weight that is no number makes every gradient none; the step must leave all as it was.
TEST(Learning, EndsBeforeGradientsThatAreNoNumbersSpoilTheWeights) {
  TrainingFixture fixture;
  const auto task = fixture.task();
  t::Trainer trainer(*task, TrainingFixture::settings(3), nullptr);
  trainer.step();
  {
    const t::NoGradient no_gradient;
    task->parameters().at("fc.weight")[0][0].fill_(std::nan(""));
  }
  const std::vector<Tensor> before = copied_values(task->parameters());
  try {
    trainer.step();
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    EXPECT_NE(std::string(error.what()).find("step 2"), std::string::npos) << error.what();
  }
  EXPECT_EQ(trainer.next_step(), 1);
  for (size_t i = 0; i < before.size(); ++i) {
    const Tensor& after = task->parameters().all()[i].value;
    EXPECT_TRUE(at::allclose(after, before[i], 0.0, 0.0, /*equal_nan=*/true));
  }
}

/// `work` of two processes, each in a thread of its own here; real processes in tests/e2e.
void for_both_ranks(const std::function<void(t::ProcessGroup&)>& work) {
  static int meetings = 0;
  const int port = 20000 + (static_cast<int>(::getpid()) + 7919 * meetings++) % 20000;
  const auto rank = [&](int number) {
    t::ProcessPlace place;
    place.rank = number;
    place.processes = 2;
    place.port = port;
    t::ProcessGroup group(place, 20);
    work(group);
  };
  std::thread other([&] { rank(1); });
  rank(0);
  other.join();
}

TEST(Together, TwoWithHalfABatchFollowOneWithAllOfIt) {
  constexpr int64_t kSteps = 5;
  TrainingFixture alone_fixture;
  const auto alone_task = alone_fixture.task();
  t::Trainer alone(*alone_task, TrainingFixture::settings(kSteps), nullptr);
  std::vector<double> expected;
  while (!alone.finished()) {
    expected.push_back(alone.step().sums.mean_loss());
  }
  std::vector<double> losses[2];
  std::vector<Tensor> weights[2];
  for_both_ranks([&](t::ProcessGroup& group) {
    TrainingFixture fixture;
    const auto task = fixture.task();
    t::Trainer trainer(*task, TrainingFixture::settings(kSteps), &group);
    while (!trainer.finished()) {
      losses[group.rank()].push_back(trainer.step().sums.mean_loss());
    }
    weights[group.rank()] = copied_values(task->parameters());
  });
  EXPECT_EQ(losses[0], losses[1]);
  ASSERT_EQ(losses[0].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(losses[0][i], expected[i], 2e-4 * expected[i]) << "step " << i;
  }
  for (size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_TRUE(at::equal(weights[0][i], weights[1][i]));
  }
}

/// Process 0 goes on from two steps, the other comes with nothing and gets all of it.
TEST(Together, TheOthersBeginWithTheStateOfTheFirst) {
  std::string notes[2];
  std::string states[2];
  const TemporaryDirectory directory;
  for_both_ranks([&](t::ProcessGroup& group) {
    TrainingFixture fixture;
    const int rank = group.rank();
    if (rank == 0) {
      const auto task = fixture.task();
      t::Trainer before(*task, TrainingFixture::settings(4), nullptr);
      before.step();
      before.step();
      before.save(directory.file("state"), "one run", "what was seen");
    }
    const auto task = fixture.task();
    t::Trainer trainer(*task, TrainingFixture::settings(4), &group);
    const std::string own = rank == 0 ? trainer.restore(directory.file("state"), "one run") : "";
    notes[rank] = trainer.begin_together("one run", own);
    EXPECT_EQ(trainer.next_step(), 2);
    trainer.step();
    const std::string file = directory.file("after" + std::to_string(rank));
    trainer.save(file, "one run", "");  // weights, moments and the step's number
    states[rank] = read_text(file);
  });
  EXPECT_EQ(notes[0], "what was seen");
  EXPECT_EQ(notes[1], "what was seen");
  EXPECT_FALSE(states[0].empty());
  EXPECT_TRUE(states[0] == states[1]);
}

TEST(Together, ProcessesOfDifferentRunsAreRefused) {
  std::string said[2];
  for_both_ranks([&](t::ProcessGroup& group) {
    TrainingFixture fixture;
    const auto task = fixture.task();
    t::Trainer trainer(*task, TrainingFixture::settings(4), &group);
    try {
      trainer.begin_together("seed " + std::to_string(group.rank()), "");
    } catch (const Error& error) {
      said[group.rank()] = error.what();
    }
  });
  for (const std::string& what : said) {
    EXPECT_NE(what.find("same flags, models and texts"), std::string::npos) << what;
  }
}

TEST(Together, AddressesByWhichAMachineIsReached) {
  EXPECT_EQ(t::own_address_towards("127.0.0.1"), "127.0.0.1");
  try {
    t::own_address_towards("no.such.host.invalid");
    FAIL() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
    EXPECT_NE(std::string(error.what()).find("--meet"), std::string::npos) << error.what();
  }
}

TEST(Together, ABatchMustBeShareable) {
  TrainingFixture fixture;
  const auto task = fixture.task();
  t::TrainerSettings settings = TrainingFixture::settings(1);
  settings.batch = 0;
  EXPECT_THROW(t::Trainer(*task, settings, nullptr), Error);
}

TEST(EarlyEnd, ComesAfterValidationsWithoutGain) {
  TrainingFixture fixture;
  const auto task = fixture.task();
  t::Trainer trainer(*task, TrainingFixture::settings(20), nullptr);
  t::RunSettings run;
  run.validate_every = 2;
  run.patience = 3;
  const std::vector<double> values = {1.5, 2.0, 1.9, 1.9, 1.8, 9.0};
  size_t asked = 0;
  t::RunHooks hooks = silent();
  hooks.validate = [&] {
    t::Validation validation;
    validation.value = values.at(asked++);
    return validation;
  };
  const t::RunOutcome outcome = t::run_training(trainer, {}, run, hooks);
  EXPECT_TRUE(outcome.stopped_early);
  EXPECT_EQ(asked, 5U);
  EXPECT_EQ(outcome.record.best_validation(), 2.0);
  EXPECT_EQ(trainer.next_step(), 10);
}

}  // namespace
}  // namespace octet::test
