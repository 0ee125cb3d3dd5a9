// A small random target with texts for training tests, and drafters over it. The target knows
// nothing, but it has a distribution to teach, and that can be learned.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "octet/models/load_model.h"
#include "octet/train/drafter_model.h"
#include "octet/train/drafter_task.h"
#include "octet/train/target_source.h"
#include "support/model_runs.h"
#include "support/random_models.h"

namespace octet::test {

struct TrainingFixture {
  std::shared_ptr<const Checkpoint> target_checkpoint;
  std::shared_ptr<const Checkpoint> drafter_checkpoint;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::vector<train::TrainingText> texts;
  std::vector<std::unique_ptr<train::TargetSource>> sources;  // of the tasks

  TrainingFixture() : target_checkpoint(make_gemma(GemmaShape(), 21)), ops(test_ops(1)) {
    DFlashShape shape;
    shape.embedding_scale = 2.0;
    drafter_checkpoint = make_dflash(shape, 22);
    target = load_target(target_checkpoint, *ops, {});
    RandomNumbers random(23);
    for (int i = 0; i < 6; ++i) {
      train::TrainingText text;
      text.first_learned = random.integer(1, 5);
      const int64_t count = random.integer(20, 40);
      // Counting up in steps of one, so that the next token can be known.
      const int64_t begin = random.integer(5, 63);
      for (int64_t t = 0; t < count; ++t) {
        text.tokens.push_back(static_cast<TokenId>(5 + (begin + t) % 59));
      }
      texts.push_back(std::move(text));
    }
  }

  /// Learns from the engine.
  std::unique_ptr<train::DrafterTask> task(
      train::Teacher teacher = train::Teacher::kTokens,
      train::Precision precision = train::Precision::kFull
  ) {
    const std::vector<int> taps = read_dflash_config(*drafter_checkpoint).taps;
    sources.push_back(std::make_unique<train::EngineSource>(*target, texts, taps));
    return task_of(*sources.back(), teacher, precision);
  }

  /// Learns from `source`, which must outlive the task.
  std::unique_ptr<train::DrafterTask> task_of(
      train::TargetSource& source, train::Teacher teacher, train::Precision precision
  ) const {
    const DFlashConfig config = read_dflash_config(*drafter_checkpoint);
    const at::Tensor table = train::decoded(target_checkpoint->at("token_embd.weight"));
    train::DrafterTaskSettings settings;
    settings.anchors = 8;
    settings.teacher = teacher;
    settings.seed = 5;
    return std::make_unique<train::DrafterTask>(
        train::DrafterNetwork(config, table, 2.0, precision),
        train::initial_drafter(config, 7, train::InitialScale::kByFanIn),
        train::OutputHead{
            train::decoded(*target->head_tensor()), target->final_softcap(), precision},
        source,
        settings
    );
  }

  static train::TrainerSettings settings(int64_t steps) {
    train::TrainerSettings result;
    result.steps = steps;
    result.batch = 4;
    result.optimizer.rate = 5e-3;
    return result;
  }
};

inline std::vector<at::Tensor> copied_values(const train::Parameters& parameters) {
  std::vector<at::Tensor> values;
  for (const train::Parameter& parameter : parameters.all()) {
    values.push_back(parameter.value.detach().clone());
  }
  return values;
}

}  // namespace octet::test
