#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/embedding_scale.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/drafter_model.h"
#include "octet/train/drafter_task.h"
#include "octet/train/options.h"
#include "octet/train/training_session.h"

namespace octet::train {
namespace {

constexpr int64_t kDefaultLength = 4096;
constexpr int64_t kShortestPrompt = 48;  // of a validation text that names none
constexpr int64_t kReplyTokens = 256;
constexpr int64_t kLeastLearned = 2;  // an anchor and a token behind it

/// The target as training needs it: in the engine, and its tables as tensors.
struct FrozenTarget {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> model;
  Tensor embedding;  // [vocabulary, hidden]
  Tensor head;       // [vocabulary, hidden]
};

FrozenTarget open_target(const std::string& path, int threads) {
  FrozenTarget target;
  target.checkpoint = open_checkpoint(path);
  target.tokenizer = load_tokenizer(*target.checkpoint);
  CpuOptions cpu;
  cpu.threads = threads;
  target.ops = make_cpu_ops(cpu);
  target.model = load_target(target.checkpoint, *target.ops, {});
  const LogicalTensor& table = target.checkpoint->at("token_embd.weight");
  target.embedding = decoded(table);
  target.head = target.model->head_tensor() == &table ? target.embedding
                                                      : decoded(*target.model->head_tensor());
  return target;
}

/// Where a drafter begins: its metadata and weights.
struct Beginning {
  ModelFrame frame;
  Parameters parameters;
  std::string description;  // of the weights
};

/// What the drafter was trained with before: asked for, in its file, or measured and stored beside
/// it. A wrong factor would train a good drafter away from what it knows.
float scale_of(
    const DrafterArguments& arguments, const Checkpoint& drafter, const Checkpoint& target
) {
  std::optional<float> asked;
  if (arguments.shape.embedding_scale > 0.0) {
    asked = static_cast<float>(arguments.shape.embedding_scale);
  }
  const auto known = cli::known_embedding_scale(asked, drafter, target);
  if (!known) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{}: does not say the factor of its embeddings; give --embedding-scale, or let `octet "
            "run` with this target measure and store it first",
            drafter.path
        )
    );
  }
  return embedding_factor(known->scale, read_dflash_config(drafter));
}

Beginning begin(const DrafterArguments& arguments, const FrozenTarget& target) {
  Beginning beginning;
  if (arguments.initial.empty()) {
    beginning.frame = new_drafter_frame(*target.checkpoint, arguments.shape);
    Checkpoint shape;
    shape.path = "the new drafter";
    shape.metadata = beginning.frame.portable.metadata;
    const DFlashConfig config = read_dflash_config(shape);
    check_pair(target.model->shape(), config, shape.path);
    beginning.parameters = initial_drafter(config, arguments.loop.seed, arguments.initial_scale);
    beginning.description = beginning_description(
        nullptr,
        arguments.initial_scale == InitialScale::kFixed ? "random weights 0.02"
                                                        : "random weights by fan-in"
    );
    return beginning;
  }
  const auto checkpoint = open_checkpoint(arguments.initial);
  if (checkpoint->find("output.weight") != nullptr) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}: has an output head of its own, which is not trained; expected a drafter that uses "
            "its target's head",
            checkpoint->path
        )
    );
  }
  // The engine's own checks of the pair.
  load_drafter(checkpoint, *target.ops, *target.model, {});
  beginning.frame = drafter_frame(
      *checkpoint, *target.checkpoint, scale_of(arguments, *checkpoint, *target.checkpoint)
  );
  beginning.parameters = parameters_of(*checkpoint, [](std::string_view) { return true; });
  beginning.description = beginning_description(checkpoint.get(), "");
  return beginning;
}

DFlashConfig config_of(const Beginning& beginning) {
  return read_dflash_config(*as_checkpoint(beginning.parameters, beginning.frame, StoredType::kF32)
  );
}

std::vector<std::vector<TokenId>> prompts_of(const TrainingTexts& texts) {
  std::vector<std::vector<TokenId>> prompts;
  for (const TrainingText& text : texts.texts) {
    const int64_t half = std::max<int64_t>(1, std::ssize(text.tokens) / 2);
    const int64_t length =
        text.first_learned > 1 ? text.first_learned : std::min(kShortestPrompt, half);
    prompts.emplace_back(text.tokens.begin(), text.tokens.begin() + length);
  }
  return prompts;
}

/// Greedy replies to the prompts, and how many tokens a step the drafter would have given.
Validation replay(
    const DrafterArguments& arguments,
    FrozenTarget& target,
    DFlashDrafter& drafter,
    const std::vector<std::vector<TokenId>>& prompts
) {
  const ReplayVariant variant{"trained", &drafter};
  ReplayRequest request;
  request.prompts = prompts;
  const auto stops = target.tokenizer->stop_ids();
  request.stop_tokens.assign(stops.begin(), stops.end());
  request.max_tokens = kReplyTokens;
  request.enough_tokens = arguments.validation_tokens;
  const ReplayResult result = replay_acceptance(*target.model, {&variant, 1}, request);
  const AcceptanceStatistics& pooled = result.variants.front().pooled;
  Validation validation;
  validation.value = pooled.mean_acceptance_length();
  for (int k = 0; k < pooled.rows(); ++k) {
    validation.by_position.push_back(pooled.joint(k));
  }
  return validation;
}

/// Everything that the weights after a step depend on.
std::string description(
    const DrafterArguments& arguments,
    const Beginning& beginning,
    const Checkpoint& target,
    uint64_t texts
) {
  return fmt::format(
      "drafter of {} parameters, shape {:016x}, from {}; target {:016x}; texts {:016x}; "
      "anchors {}, gamma {}, teacher {}, {}",
      beginning.parameters.count(),
      shape_digest(beginning.frame),
      beginning.description,
      checkpoint_digest(target),
      texts,
      arguments.task.anchors,
      arguments.task.weight_decay,
      arguments.task.teacher == Teacher::kTokens ? "tokens" : "distribution",
      loop_description(arguments.loop)
  );
}

}  // namespace

int train_drafter(const DrafterArguments& arguments) {
  const LoopOptions& loop = arguments.loop;
  TrainingSession session(loop, {arguments.target, arguments.initial});
  FrozenTarget target = open_target(arguments.target, session.threads());
  Beginning beginning = begin(arguments, target);
  const DFlashConfig config = config_of(beginning);

  TextRules rules;
  rules.vocabulary = target.model->shape().vocabulary;
  const int64_t length = loop.length > 0 ? loop.length : kDefaultLength;
  rules.most_tokens = std::min(length, target.model->shape().context_length);
  rules.least_learned = kLeastLearned;
  if (rules.most_tokens < length) {
    rules.most_tokens_by = "the target's context length";
  }
  rules.bad = loop.bad_lines;
  const TrainingTexts texts = session.read(loop.data_files, rules, target.tokenizer.get());
  const TrainingTexts judged = session.read(loop.validation_files, rules, target.tokenizer.get());
  const auto prompts = prompts_of(judged);

  DrafterTaskSettings settings = arguments.task;
  settings.seed = loop.seed;
  const std::string about =
      description(arguments, beginning, *target.checkpoint, texts_digest(texts.texts));
  const ModelFrame frame = std::move(beginning.frame);
  const double scale = config.embedding_scale.value();
  DrafterTask task(
      DrafterNetwork(config, target.embedding, scale, loop.precision),
      std::move(beginning.parameters),
      {target.head, config.final_softcap.value_or(target.model->final_softcap()), loop.precision},
      *target.model,
      texts.texts,
      settings
  );

  TrainingSession::Plan plan;
  plan.title = fmt::format("drafter for {}", arguments.target);
  plan.description = about;
  plan.value_name = "mean acceptance length";
  plan.texts = std::ssize(texts.texts);
  if (!prompts.empty()) {
    plan.validate = [&] {
      const auto drafter = drafter_in_engine(task.parameters(), frame, *target.ops, *target.model);
      return replay(arguments, target, *drafter, prompts);
    };
  }
  plan.write = [&](const std::string& path) {
    ThreadPool pool(session.threads());
    write_model_folder(task.parameters(), frame, path, pool);
  };
  return session.run(task, plan);
}

}  // namespace octet::train
