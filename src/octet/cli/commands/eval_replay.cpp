#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/cli/commands/commands.h"
#include "octet/cli/draft_head.h"
#include "octet/cli/embedding_scale.h"
#include "octet/cli/json_writer.h"
#include "octet/cli/pair.h"
#include "octet/cli/terminal.h"
#include "octet/evaluate/feature_replay.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/gemma4/lent_vocabulary.h"
#include "octet/text/load_tokenizer.h"

namespace octet::cli {
namespace {

std::string length_of(const AcceptanceStatistics& statistics) {
  return statistics.steps == 0 ? "none"
                               : fmt::format("{:.3f}", statistics.mean_acceptance_length());
}

/// Names the drafter's rounded weights where they were not compared with those that it was trained
/// with: only another file can show what rounding costs.
std::string rounding_of(const Checkpoint& drafter, bool compared) {
  for (const LogicalTensor& tensor : drafter.tensors()) {
    const bool whole =
        tensor.dtype == DType::kF32 || tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
    if (!compared && !whole) {
      return fmt::format(
          "its weights are rounded ({}): --against with the drafter as it was trained shows what "
          "that costs",
          dtype_facts(tensor.dtype).name
      );
    }
  }
  return "";
}

/// What may be wrong, a sentence for each thing.
std::vector<std::string> verdict_of(const FeatureReplay& replay, const std::string& rounding) {
  std::vector<std::string> verdict;
  const FeatureTrial* better = replay.clearly_better();
  verdict.push_back(
      better == nullptr ? "nothing that was tried is clearly better"
                        : fmt::format(
                              "{} would give {:.2f} instead of {:.2f}",
                              better->name,
                              better->found.mean_acceptance_length(),
                              replay.all.mean_acceptance_length()
                          )
  );
  if (const AcceptanceStatistics* worse = replay.clearly_worse_kind()) {
    const bool thinking = worse == &replay.thinking;
    verdict.push_back(fmt::format(
        "replies {} thinking reach {:.2f}, the others {:.2f}: a drafter knows the kind of text "
        "that "
        "it was trained on",
        thinking ? "with" : "without",
        worse->mean_acceptance_length(),
        (thinking ? replay.speaking : replay.thinking).mean_acceptance_length()
    ));
  }
  if (!rounding.empty()) {
    verdict.push_back(rounding);
  }
  return verdict;
}

/// `head`: the stored one that drafts were read from; empty: the pair's.
std::string table_of(
    const FeatureReplay& replay,
    const std::string& head,
    const std::vector<std::string>& verdict,
    bool attribute
) {
  std::string text = fmt::format(
      "{} replies, {} steps\n\n{:<28} {}\n{:<28} {:.3f}\n{:<28} {}\n{:<28} {}\n{:<28}",
      replay.records,
      replay.all.steps,
      "acceptance length",
      length_of(replay.all),
      "tokens a step",
      replay.all.tokens_per_step(),
      "thinking asked for",
      length_of(replay.thinking),
      "not asked for",
      length_of(replay.speaking),
      "accepted, by position"
  );
  for (int k = 0; k < replay.all.rows(); ++k) {
    text += fmt::format(" {:.2f}", replay.all.joint(k));
  }
  text += "\n";
  if (!head.empty()) {
    text += fmt::format("{:<28} {}\n", "draft head", head);
  }
  if (!replay.trials.empty()) {
    text += "\nwith one thing changed         acceptance length\n";
  }
  for (const FeatureTrial& trial : replay.trials) {
    text += fmt::format("{:<30} {}\n", trial.name, length_of(trial.found));
  }
  return attribute ? fmt::format("{}\n{}\n", text, fmt::join(verdict, "\n")) : text;
}

void write_statistics(JsonWriter& json, const AcceptanceStatistics& statistics) {
  json.begin_object();
  json.member("steps", statistics.steps);
  json.member("acceptance_length", statistics.mean_acceptance_length());
  json.member("tokens_per_step", statistics.tokens_per_step());
  json.key("by_position").begin_array();
  for (int k = 0; k < statistics.rows(); ++k) {
    json.value(statistics.joint(k));
  }
  json.end_array().end_object();
}

std::string json_of(
    const FeatureReplay& replay, const std::string& head, const std::vector<std::string>& verdict
) {
  JsonWriter json;
  json.begin_object();
  json.member("replies", replay.records);
  if (!head.empty()) {
    json.member("draft_head", head);
  }
  for (const auto& [name, statistics] :
       {std::pair("all", &replay.all),
        std::pair("thinking", &replay.thinking),
        std::pair("not_thinking", &replay.speaking)}) {
    json.key(name);
    write_statistics(json, *statistics);
  }
  json.key("trials").begin_array();
  for (const FeatureTrial& trial : replay.trials) {
    json.begin_object().member("name", trial.name).key("acceptance");
    write_statistics(json, trial.found);
    json.end_object();
  }
  json.end_array();
  json.key("verdict").begin_array();
  for (const std::string& sentence : verdict) {
    json.value(sentence);
  }
  json.end_array();
  json.end_object();
  return json.text();
}

}  // namespace

int eval_replay(const EvalReplayArguments& arguments) {
  const FeatureFile file = FeatureFile::open(arguments.features);
  const auto target = open_checkpoint(arguments.target);
  require_target(file, *target);
  const auto ops = make_cpu_ops(
      {.threads = arguments.threads, .isa = arguments.isa, .activation = arguments.activation}
  );
  LentVocabulary vocabulary(target, *ops);
  const auto tokenizer = load_tokenizer(*target);
  FeatureReplayRequest request{
      file,
      open_checkpoint(arguments.drafter),
      {},
      nullptr,
      *ops,
      vocabulary,
      tokenizer->stop_ids(),
      tokenizer->suppressed_ids()};
  if (const auto scale =
          known_embedding_scale(arguments.embedding_scale, *request.drafter, *target)) {
    request.embedding_scale = scale->scale;
  }
  request.draft_head = choose_draft_head(arguments.draft_head, *request.drafter);
  request.kv_type = arguments.kv_type;
  if (!arguments.against.empty()) {
    request.other = open_checkpoint(arguments.against);
  }
  refuse_idle_activation(
      arguments.activation, {target.get(), request.drafter.get(), request.other.get()}
  );
  request.stride = arguments.stride;
  request.limit = arguments.limit;
  request.attribute = arguments.attribute;
  Progress progress(!arguments.json);
  const FeatureReplay replay = replay_features(request, [&](const std::string& trial) {
    progress.show(fmt::format("Replaying: {}", trial));
  });
  progress.clear();
  const std::string head =
      request.draft_head != nullptr ? describe_draft_head(*request.draft_head) : "";
  const std::vector<std::string> verdict =
      verdict_of(replay, rounding_of(*request.drafter, request.other != nullptr));
  fmt::print(
      "{}",
      arguments.json ? json_of(replay, head, verdict) + "\n"
                     : table_of(replay, head, verdict, arguments.attribute)
  );
  return replay.all.mean_acceptance_length() < arguments.min_acceptance.value_or(0.0) ? 1 : 0;
}

}  // namespace octet::cli
