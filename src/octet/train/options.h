// What the commands of octet-train are asked to do, as plain values. Filled by arguments.cpp alone.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "octet/evaluate/prompt_suite.h"
#include "octet/train/drafter_model.h"
#include "octet/train/drafter_task.h"
#include "octet/train/process_group.h"
#include "octet/train/trainer.h"

namespace octet::train {

/// Of both kinds of training.
struct LoopOptions {
  std::vector<std::string> data_files;
  std::vector<std::string> validation_files;
  BadLines bad_lines = BadLines::kRefuse;
  int64_t length = 0;  // 0: the command's default
  TrainerSettings trainer;
  double epochs = 0.0;  // 0: --steps says it
  uint64_t seed = 0;
  Precision precision = Precision::kBF16;
  int threads = 0;
  std::string output;
  std::string state_file;
  bool resume = false;
  int64_t save_every = 200;
  int64_t validate_every = 0;  // 0: every epoch
  int64_t patience = 0;
  std::string html_file;
  bool quiet = false;
  bool force = false;
  ProcessPlace place;  // processes 1: alone
};

/// Which tokens of a text with turns a drafter learns from.
enum class Learn { kReplies, kAll };

struct DrafterArguments {
  std::string target;
  std::string initial;                                // an existing drafter; "": random weights
  std::vector<std::string> feature_files;             // recorded texts instead of data files
  std::vector<std::string> validation_feature_files;  // likewise
  DrafterShape shape;
  InitialScale initial_scale = InitialScale::kByFanIn;
  Learn learn = Learn::kReplies;
  DrafterTaskSettings task;
  int64_t validation_tokens = 2000;
  LoopOptions loop;
};

struct TargetArguments {
  std::string like;     // a checkpoint whose shape, tokenizer and template the new target has
  std::string initial;  // a target to begin with; "": random weights
  LoopOptions loop;
};

struct CorpusArguments {
  std::string output;
  int64_t dialogues = 40'000;
  double thinking_share = 0.35;
  uint64_t seed = 0;
  std::vector<std::string> withheld_files;  // dialogues that are not to be in it, nor their sums
  bool force = false;
};

struct SamplesArguments {
  std::string target;
  std::vector<std::string> data_files;  // whose beginnings are continued
  std::string output;
  int64_t count = 4000;
  int64_t length = 513;       // tokens of a text
  int64_t prompt_tokens = 0;  // of them given; 0: those before the first reply
  double temperature = 1.0;
  uint64_t seed = 0;
  int threads = 0;
  bool force = false;
};

struct HelpNotice {
  std::string text;
};

using TrainCommand =
    std::variant<HelpNotice, DrafterArguments, TargetArguments, CorpusArguments, SamplesArguments>;

/// `arguments` without the program's name. Throws Error(kInvalidArgument) in one sentence.
TrainCommand parse_train_arguments(const std::vector<std::string>& arguments);

// The commands; each returns the exit code and throws Error for anything wrong with its input.
int train_drafter(const DrafterArguments& arguments);
int train_target(const TargetArguments& arguments);
int write_corpus(const CorpusArguments& arguments);
int write_samples(const SamplesArguments& arguments);

}  // namespace octet::train
