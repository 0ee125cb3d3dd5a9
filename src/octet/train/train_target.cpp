#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/formats/tensor_names.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/options.h"
#include "octet/train/target_task.h"
#include "octet/train/training_session.h"

namespace octet::train {
namespace {

constexpr int64_t kDefaultLength = 512;
constexpr int64_t kJudgedPieces = 24;  // of validation texts, evenly spread

void require_tied(const Checkpoint& target) {
  if (target.architecture() != "gemma4" || target.find("output.weight") != nullptr) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: expected a gemma4 target whose head is its embedding", target.path)
    );
  }
}

/// Weights to begin with. Throws Error(kMismatch) unless they have names and shapes of `like`.
Parameters given_target(const Checkpoint& given, const Checkpoint& like) {
  require_tied(given);
  Checkpoint fitting;
  fitting.metadata = like.metadata;
  try {
    const auto tensors = given.tensors();
    add_validated_tensors(fitting, {tensors.begin(), tensors.end()}, UnusedTensors::kLeaveOut);
  } catch (const Error& error) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format("{}: its weights do not fit {}: {}", given.path, like.path, error.what())
    );
  }
  for (const LogicalTensor& tensor : like.tensors()) {
    const LogicalTensor* own = fitting.find(tensor.name);
    if (own == nullptr || own->shape != tensor.shape) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "{}: its weights do not fit {}: {} is {} instead of {}",
              given.path,
              like.path,
              tensor.name,
              own == nullptr ? "missing" : shape_text(own->shape),
              shape_text(tensor.shape)
          )
      );
    }
  }
  return parameters_of(fitting, [](std::string_view name) { return name != kRopeFrequenciesName; });
}

ModelFrame frame_like(const std::shared_ptr<const Checkpoint>& like) {
  require_tied(*like);
  ModelFrame frame;
  frame.portable = gather_metadata(*like, nullptr);
  frame.owner = like;
  frame.fixed.push_back(like->at(kRopeFrequenciesName));
  try {
    partial_rotary_factor_of(frame.fixed.front());  // other divisors are not trained
  } catch (Error& error) {
    error.add_context(like->path);
    throw;
  }
  return frame;
}

std::vector<TrainingText> evenly(const std::vector<TrainingText>& pieces, int64_t count) {
  std::vector<TrainingText> chosen;
  const int64_t all = std::ssize(pieces);
  for (int64_t i = 0; i < std::min(count, all); ++i) {
    chosen.push_back(pieces[static_cast<size_t>(i * all / std::min(count, all))]);
  }
  return chosen;
}

}  // namespace

int train_target(const TargetArguments& arguments) {
  const LoopOptions& loop = arguments.loop;
  TrainingSession session(loop, {arguments.like, arguments.initial});
  const auto like = open_checkpoint(arguments.like);
  const auto tokenizer = load_tokenizer(*like);
  const ModelFrame frame = frame_like(like);
  const Gemma4Config config = read_gemma4_config(*like);
  const auto initial = arguments.initial.empty() ? nullptr : open_checkpoint(arguments.initial);
  Parameters parameters =
      initial ? given_target(*initial, *like) : initial_target(*like, loop.seed);
  const Tensor divisors = decoded(frame.fixed.front());

  TextRules rules;
  rules.vocabulary = config.vocabulary;
  rules.most_tokens = config.context_length;
  rules.most_tokens_by = "the target's context length";
  rules.bad = loop.bad_lines;
  const int64_t length = loop.length > 0 ? loop.length : kDefaultLength;
  const std::vector<TrainingText> pieces =
      packed_texts(session.read(loop.data_files, rules, tokenizer.get()), length);
  const std::vector<TrainingText> judged = evenly(
      packed_texts(session.read(loop.validation_files, rules, tokenizer.get()), length),
      kJudgedPieces
  );
  if (pieces.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "the texts fill no piece of {} tokens; give more, or a smaller --length", length
        )
    );
  }
  TrainingSession::Plan plan;
  plan.title = fmt::format("target like {}", arguments.like);
  plan.description = fmt::format(
      "target of {} parameters, shape {:016x}, from {}; texts {:016x}; length {}, {}",
      parameters.count(),
      shape_digest(frame),
      beginning_description(initial.get(), "random weights"),
      texts_digest(pieces),
      length,
      loop_description(loop)
  );
  plan.value_name = "next-token accuracy";
  plan.texts = std::ssize(pieces);
  TargetTask task(
      TargetNetwork(config, divisors, loop.precision),
      std::move(parameters),
      pieces,
      loop.precision,
      loop.seed
  );
  if (!judged.empty()) {
    plan.validate = [&] {
      Validation validation;
      validation.value = task.judge(judged).accuracy(0);
      return validation;
    };
  }
  plan.write = [&](const std::string& path) {
    ThreadPool pool(session.threads());
    write_model_folder(task.parameters(), frame, path, pool);
  };
  return session.run(task, plan);
}

}  // namespace octet::train
