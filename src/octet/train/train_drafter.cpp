#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/embedding_scale.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/gemma4/lent_vocabulary.h"
#include "octet/models/gemma4/output_logits.h"
#include "octet/models/load_model.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/drafter_model.h"
#include "octet/train/drafter_task.h"
#include "octet/train/drafter_validation.h"
#include "octet/train/options.h"
#include "octet/train/recorded_texts.h"
#include "octet/train/target_source.h"
#include "octet/train/training_session.h"

namespace octet::train {
namespace {

constexpr int64_t kDefaultLength = 4096;
constexpr int64_t kLeastLearned = 2;  // an anchor and a token behind it

/// The target as training needs it: in the engine, and its tables as tensors. Where no layer of it
/// will run, none is read.
struct FrozenTarget {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> model;
  Tensor embedding;  // [vocabulary, hidden]
  Tensor head;       // [vocabulary, hidden]
};

FrozenTarget open_target(const DrafterArguments& arguments, int threads) {
  FrozenTarget target;
  target.checkpoint = open_checkpoint(arguments.target);
  target.tokenizer = load_tokenizer(*target.checkpoint);
  CpuOptions cpu;
  cpu.threads = threads;
  target.ops = make_cpu_ops(cpu);
  if (arguments.loop.data_files.empty() && arguments.loop.validation_files.empty()) {
    target.model = std::make_unique<LentVocabulary>(target.checkpoint, *target.ops);
  } else {
    target.model = load_target(target.checkpoint, *target.ops, {});
  }
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

TextRules rules_of(const LoopOptions& loop, const TargetShape& target) {
  TextRules rules;
  rules.vocabulary = target.vocabulary;
  const int64_t length = loop.length > 0 ? loop.length : kDefaultLength;
  rules.most_tokens = std::min(length, target.context_length);
  rules.least_learned = kLeastLearned;
  if (rules.most_tokens < length) {
    rules.most_tokens_by = "the target's context length";
  }
  rules.bad = loop.bad_lines;
  return rules;
}

/// What is learned and what is judged by, each as lines of text or as recorded files.
struct DrafterTexts {
  TrainingTexts learned;
  RecordedTexts learned_records;
  std::vector<std::vector<TokenId>> prompts;
  RecordedTexts judged_records;

  std::span<const TrainingText> texts() const {
    return learned.texts.empty() ? learned_records.texts : learned.texts;
  }
  std::string description() const {
    const std::string texts_alone = fmt::format("{:016x}", texts_digest(texts()));
    return learned_records.files.empty()
               ? texts_alone
               : fmt::format("{} as recorded {:016x}", texts_alone, learned_records.digest());
  }
};

DrafterTexts read_texts(
    const DrafterArguments& arguments, const FrozenTarget& target, const TrainingSession& session
) {
  const LoopOptions& loop = arguments.loop;
  const TextRules rules = rules_of(loop, target.model->shape());
  const Tokenizer* tokenizer = target.tokenizer.get();
  const Checkpoint& checkpoint = *target.checkpoint;
  DrafterTexts texts;
  texts.learned = session.read(loop.data_files, rules, tokenizer);
  texts.learned_records = session.read_recorded(arguments.feature_files, checkpoint, rules);
  if (arguments.learn == Learn::kReplies) {
    learn_replies_only(texts.learned.texts, *tokenizer);
    learn_replies_only(texts.learned_records.texts, *tokenizer);
  }
  texts.prompts = prompts_of(session.read(loop.validation_files, rules, tokenizer), *tokenizer);
  texts.judged_records =
      session.read_recorded(arguments.validation_feature_files, checkpoint, rules);
  return texts;
}

/// Where features and the teacher's logits come from. `logits` keeps what forms these.
std::unique_ptr<TargetSource> make_source(
    const DrafterTexts& texts,
    const FrozenTarget& target,
    const std::vector<int>& taps,
    Teacher teacher,
    std::unique_ptr<OutputLogits>& logits
) {
  if (texts.learned_records.files.empty()) {
    return std::make_unique<EngineSource>(*target.model, texts.learned.texts, taps);
  }
  if (teacher == Teacher::kDistribution) {
    logits = std::make_unique<OutputLogits>(*target.checkpoint, *target.ops, *target.model);
  }
  return std::make_unique<RecordedSource>(texts.learned_records, taps, logits.get());
}

Validation validate(
    const DrafterTexts& texts,
    const FrozenTarget& target,
    DFlashDrafter& drafter,
    int64_t enough_tokens
) {
  const ValidationLimits limits{*target.tokenizer, enough_tokens};
  return texts.prompts.empty()
             ? validate_on_records(
                   texts.judged_records, drafter, target.model->shape().vocabulary, limits
               )
             : validate_by_replies(*target.model, drafter, texts.prompts, limits);
}

/// What a run reads beside the files of its loop.
std::vector<std::string> inputs_of(const DrafterArguments& arguments) {
  std::vector<std::string> inputs = {arguments.target, arguments.initial};
  for (const auto* files : {&arguments.feature_files, &arguments.validation_feature_files}) {
    inputs.insert(inputs.end(), files->begin(), files->end());
  }
  return inputs;
}

/// Everything that the weights after a step depend on.
std::string description(
    const DrafterArguments& arguments,
    const Beginning& beginning,
    const Checkpoint& target,
    const std::string& texts
) {
  return fmt::format(
      "drafter of {} parameters, shape {:016x}, from {}; target {:016x}; texts {}; "
      "learn {}, anchors {}, gamma {}, teacher {}, {}",
      beginning.parameters.count(),
      shape_digest(beginning.frame),
      beginning.description,
      checkpoint_digest(target),
      texts,
      arguments.learn == Learn::kReplies ? "replies" : "all",
      arguments.task.anchors,
      arguments.task.weight_decay,
      arguments.task.teacher == Teacher::kTokens ? "tokens" : "distribution",
      loop_description(arguments.loop)
  );
}

}  // namespace

int train_drafter(const DrafterArguments& arguments) {
  const LoopOptions& loop = arguments.loop;
  TrainingSession session(loop, inputs_of(arguments));
  const FrozenTarget target = open_target(arguments, session.threads());
  Beginning beginning = begin(arguments, target);
  const DFlashConfig config = config_of(beginning);
  const DrafterTexts texts = read_texts(arguments, target, session);
  std::unique_ptr<OutputLogits> logits;
  const auto source = make_source(texts, target, config.taps, arguments.task.teacher, logits);
  for (const FeatureFile& file : texts.judged_records.files) {
    file.require_taps(config.taps);
  }

  DrafterTaskSettings settings = arguments.task;
  settings.seed = loop.seed;
  const std::string about =
      description(arguments, beginning, *target.checkpoint, texts.description());
  const ModelFrame frame = std::move(beginning.frame);
  const double scale = config.embedding_scale.value();
  DrafterTask task(
      DrafterNetwork(config, target.embedding, scale, loop.precision),
      std::move(beginning.parameters),
      {target.head, config.final_softcap.value_or(target.model->final_softcap()), loop.precision},
      *source,
      settings
  );

  TrainingSession::Plan plan;
  plan.title = fmt::format("drafter for {}", arguments.target);
  plan.description = about;
  plan.value_name = "mean acceptance length";
  plan.texts = std::ssize(texts.texts());
  if (!texts.prompts.empty() || !texts.judged_records.texts.empty()) {
    plan.validate = [&] {
      const auto drafter = drafter_in_engine(task.parameters(), frame, *target.ops, *target.model);
      return validate(texts, target, *drafter, arguments.validation_tokens);
    };
  }
  plan.write = [&](const std::string& path) {
    ThreadPool pool(session.threads());
    write_model_folder(task.parameters(), frame, path, pool);
  };
  return session.run(task, plan);
}

}  // namespace octet::train
