#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/formats/rope_frequencies.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/options.h"
#include "octet/train/target_task.h"
#include "octet/train/training_session.h"

namespace octet::train {
namespace {

constexpr int64_t kDefaultLength = 512;
constexpr int64_t kJudgedPieces = 24;  // of validation texts, evenly spread

/// Tables and matrices train; a head of its own would have to be tied here.
bool trains(std::string_view name) {
  return name != kRopeFrequenciesName && name != "output.weight";
}

ModelFrame frame_like(const std::shared_ptr<const Checkpoint>& like) {
  if (like->architecture() != "gemma4" || like->find("output.weight") != nullptr) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("{}: expected a gemma4 target whose head is its embedding", like->path)
    );
  }
  ModelFrame frame;
  frame.portable = gather_metadata(*like, nullptr);
  frame.owner = like;
  frame.fixed.push_back(like->at(kRopeFrequenciesName));
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
  TrainingSession session(loop);
  const auto like = open_checkpoint(arguments.like);
  const auto tokenizer = load_tokenizer(*like);
  const ModelFrame frame = frame_like(like);
  const Gemma4Config config = read_gemma4_config(*like);
  Parameters parameters = arguments.initial.empty()
                              ? initial_target(frame.portable.metadata, loop.seed)
                              : parameters_of(*open_checkpoint(arguments.initial), trains);
  const Tensor divisors = decoded(frame.fixed.front());

  TextRules rules;
  rules.vocabulary = config.vocabulary;
  rules.most_tokens = config.context_length;
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
      "target of {} parameters; texts {:016x}; length {}, {}",
      parameters.count(),
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
