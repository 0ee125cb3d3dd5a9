// The target that is trained is the target that runs: its logits are the engine's and the published
// ones of an independent float64 pass; and its gradients agree with finite differences.
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/train/target_task.h"
#include "support/conversions.h"
#include "support/golden_files.h"
#include "support/random_models.h"
#include "support/temporary_directory.h"
#include "support/tensor_rows.h"

namespace octet::test {
namespace {

using at::Tensor;
namespace t = octet::train;

bool trains(std::string_view name) {
  return name != kRopeFrequenciesName && name != "output.weight";
}

t::TargetNetwork network_of(const Checkpoint& checkpoint) {
  return {
      read_gemma4_config(checkpoint),
      t::decoded(checkpoint.at(kRopeFrequenciesName)),
      t::Precision::kFull};
}

Tensor logits_of(
    const t::TargetNetwork& network,
    const t::Parameters& parameters,
    const std::vector<TokenId>& ids
) {
  const Tensor tokens =
      at::tensor(std::vector<int64_t>(ids.begin(), ids.end()), at::kLong).unsqueeze(0);
  const Tensor logits =
      at::mm(network.states(parameters, tokens), parameters.at("token_embd.weight").t());
  const double cap = network.config().softcap;
  return cap > 0.0 ? at::tanh(logits / cap) * cap : logits;
}

void expect_equal_logits(
    const std::shared_ptr<const Checkpoint>& checkpoint, int64_t vocabulary, double tolerance
) {
  std::vector<TokenId> ids;
  RandomNumbers random(31);
  for (int i = 0; i < 150; ++i) {
    ids.push_back(static_cast<TokenId>(random.integer(1, vocabulary - 1)));
  }
  const auto ops = test_ops(1);
  const auto model = load_target(checkpoint, *ops, {});
  const Tensor expected = tensor_of(run_target(*model, ids, 64, {}, KvType::kF32).logits);
  const t::NoGradient no_gradient;
  const Tensor found =
      logits_of(network_of(*checkpoint), t::parameters_of(*checkpoint, trains), ids);
  EXPECT_LE(largest_difference(found, expected), tolerance);
}

TEST(TrainedTargetIsTheEngines, PublishedLogits) {
  const std::string folder = OCTET_SOURCE_DIR "/tests/golden/tiny/";
  const auto checkpoint = open_checkpoint(folder + "tiny-bf16.gguf");
  const auto parameters = t::parameters_of(*checkpoint, trains);
  const t::TargetNetwork network = network_of(*checkpoint);
  const t::NoGradient no_gradient;
  for (const char* name : {"s001", "s007", "s033"}) {
    const std::string file = folder + "tiny-bf16/exact/" + name + ".logits.f32";
    ASSERT_TRUE(exists(file)) << file;
    const auto ids = token_list(*read_json(folder + "sequences.json").find_array(name));
    const Tensor expected = tensor_of(read_f32_rows(file, network.config().vocabulary));
    EXPECT_LE(largest_difference(logits_of(network, parameters, ids), expected), 4e-4) << name;
  }
}

TEST(TrainedTargetIsTheEngines, RandomTargets) {
  expect_equal_logits(make_gemma(GemmaShape(), 41), 64, 2e-3);
  GemmaShape plain;
  plain.ple_width = 0;
  plain.shared_layers = 0;
  plain.layer_scalars = false;
  plain.softcap = 0.0;
  expect_equal_logits(make_gemma(plain, 42), 64, 4e-3);
}

TEST(TrainedTargetIsTheEngines, TheTrainedTarget) {
  const TemporaryDirectory directory;
  expect_equal_logits(decoded_shipped_model("bolt-tiny-q8_0", directory), 4096, 1e-2);
}

TEST(TargetGradients, AgreeWithFiniteDifferences) {
  at::manual_seed(43);
  GemmaShape shape;
  shape.hidden = 16;
  shape.window = 4;
  const auto checkpoint = make_gemma(shape, 44);
  const t::TargetNetwork network = network_of(*checkpoint);
  t::Parameters parameters;
  for (const LogicalTensor& tensor : checkpoint->tensors()) {
    if (trains(tensor.name)) {
      parameters.add(tensor.name, t::decoded(tensor).to(at::kDouble));
    }
  }
  const Tensor tokens = at::randint(0, 64, {2, 9}, at::kLong);
  t::HeadLossRows rows;
  rows.labels = at::randint(0, 64, {18}, at::kLong);
  rows.weights = at::rand({18}, at::kDouble);
  const auto loss = [&] {
    const t::OutputHead head = {
        parameters.at("token_embd.weight"), network.config().softcap, t::Precision::kFull};
    return t::head_loss(network.states(parameters, tokens), head, rows).loss;
  };
  for (t::Parameter& parameter : parameters.all()) {
    // Of the tables, rows of tokens that occur.
    if (parameter.name.ends_with("token_embd.weight")) {
      continue;
    }
    expect_gradient(parameter.value, loss, 3, parameter.name.c_str());
  }
  t::Parameter& table = parameters.all()[0];
  ASSERT_EQ(table.name, "token_embd.weight");
  expect_gradient(table.value, loss, 64, "token_embd.weight");
}

/// Also of a target whose file says nothing of per-layer inputs.
TEST(InitialTarget, HasTheTensorsOfItsModel) {
  GemmaShape plain;
  plain.ple_width = 0;
  const auto without = make_gemma(plain, 45);
  Checkpoint silent;
  silent.storage.push_back(without);
  for (const auto& [key, value] : without->metadata.entries()) {
    if (key != "gemma4.embedding_length_per_layer_input") {
      silent.metadata.set(key, value);
    }
  }
  silent.metadata.set("gemma4.vocab_size", uint32_t{64});
  for (const LogicalTensor& tensor : without->tensors()) {
    silent.add(tensor);
  }
  GemmaShape full;
  full.ple_vocabulary = 57;
  const auto with = make_gemma(full, 46);
  with->metadata.set("gemma4.vocab_size", uint32_t{64});
  for (const Checkpoint* like : std::initializer_list<const Checkpoint*>{&silent, with.get()}) {
    const t::Parameters parameters = t::initial_target(*like, 3);
    for (const LogicalTensor& tensor : like->tensors()) {
      if (trains(tensor.name)) {
        ASSERT_NE(parameters.find(tensor.name), nullptr) << tensor.name;
        EXPECT_EQ(parameters.at(tensor.name).sizes().vec(), tensor.shape) << tensor.name;
      }
    }
    const t::NoGradient no_gradient;
    const Tensor logits = logits_of(network_of(*like), parameters, {5, 6, 7, 8});
    EXPECT_TRUE(at::isfinite(logits).all().item<bool>());
  }
}

TEST(TargetLearning, LossFallsAndTheFolderOpensInTheEngine) {
  const auto like = open_checkpoint(OCTET_SOURCE_DIR "/models/bolt-tiny/bolt-tiny-q8_0.gguf");
  t::ModelFrame frame;
  frame.portable = gather_metadata(*like, nullptr);
  frame.owner = like;
  frame.fixed.push_back(like->at(kRopeFrequenciesName));
  std::vector<t::TrainingText> pieces(4);
  for (size_t p = 0; p < pieces.size(); ++p) {
    for (int i = 0; i < 24; ++i) {
      pieces[p].tokens.push_back(static_cast<TokenId>(20 + (static_cast<int>(p) + i) % 5));
    }
  }
  t::TargetTask task(
      network_of(*like), t::initial_target(*like, 1), pieces, t::Precision::kFull, 1
  );
  t::TrainerSettings settings;
  settings.steps = 4;
  settings.batch = 2;
  t::Trainer trainer(task, settings, nullptr);
  const double first = trainer.step().sums.mean_loss();
  EXPECT_NEAR(first, std::log(4096.0), 2.5);  // random weights know next to nothing
  t::StepReport last;
  while (!trainer.finished()) {
    last = trainer.step();
  }
  EXPECT_LT(last.sums.mean_loss(), 0.95 * first);
  EXPECT_LT(task.judge(pieces).mean_loss(), 0.95 * first);

  const TemporaryDirectory directory;
  ThreadPool pool(1);
  t::write_model_folder(task.parameters(), frame, directory.file("model"), pool);
  const auto written = open_checkpoint(directory.file("model"));
  const auto ops = test_ops(1);
  const auto model = load_target(written, *ops, {});
  const t::NoGradient no_gradient;
  const Tensor expected =
      tensor_of(run_target(*model, pieces[0].tokens, 64, {}, KvType::kF32).logits);
  const Tensor found =
      logits_of(network_of(*written), t::parameters_of(*written, trains), pieces[0].tokens);
  EXPECT_LE(largest_difference(found, expected), 1e-2);
}

}  // namespace
}  // namespace octet::test
