// What the command line says, as plain values: one struct a command, built from shared parts.
// Filled by arguments.cpp, read by commands/. Knows nothing of files or models: checks that need
// them come later. Invariant: every value is inside the range that --help states.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "octet/cli/synth/presets.h"
#include "octet/cli/synth/recipe.h"
#include "octet/evaluate/feature_file.h"
#include "octet/kernels/ops.h"
#include "octet/models/weight_loader.h"
#include "octet/sampling/sampling_params.h"
#include "octet/speculation/proposal.h"
#include "octet/tensor/dtype.h"

namespace octet::cli {

/// How drafted tokens are told from the target's own in streamed text.
enum class Marks { kAuto, kColor, kText, kOff };

/// What is shown of thoughts: all, one line, nothing.
enum class ThoughtView { kShow, kFold, kHide };

/// The pair to load and the machine to run it on.
struct PairOptions {
  std::string model;
  std::string draft_model;  // empty: no drafter
  int64_t context = 0;      // positions; 0: 8,192 or the model's limit, whichever is less
  int threads = 0;          // 0: all usable CPUs
  std::string isa;          // empty: the best the CPU has
  KvType kv_type = KvType::kBF16;
  ActivationMode activation = ActivationMode::kAuto;
  std::optional<int64_t> memory_limit;    // bytes; nullopt: none
  TablePlace tables = TablePlace::kFile;  // kMemory: nothing is read from files after loading
  bool lock_memory = false;
  std::optional<float> embedding_scale;  // nullopt: from the file, else stored, else measured
  std::string draft_head = "auto";  // "auto": beside the drafter; "full": the pair's; or a file
};

/// Sampling as asked for; what is not set comes from the checkpoint (general.sampling.*), else it
/// is greedy.
struct SamplingOptions {
  std::optional<float> temperature;
  std::optional<int64_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<uint64_t> seed;  // nullopt: a fresh one, stated in the summary
  std::optional<float> repetition_penalty;
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  int64_t penalty_last_n = 0;
  bool penalise_prompt = false;
  std::vector<std::string> logit_bias;  // "ID=BIAS"
};

struct ReplyOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 512;
  std::optional<int> draft_max;  // nullopt: all that the drafter gives; 0: no drafting
  bool adapt_drafts = true;
  VerifyRule rule = VerifyRule::kCompare;
  std::optional<DraftChoice> draft_choice;  // nullopt: the measured default
  std::vector<std::string> stop_strings;
  bool ignore_end = false;  // go on after end tokens
  std::string system;
  std::string chat_template;  // built-in name or file; empty: the model's
  bool no_thinking = false;
  std::optional<int64_t> thinking_budget;
  bool conversational = false;
  ThoughtView thoughts = ThoughtView::kShow;
  Marks marks = Marks::kAuto;
  int compare_rounds = 0;  // > 0: also measure plain against drafted, in turn, so many times
  bool quiet = false;      // no summary
};

struct RunArguments {
  PairOptions pair;
  ReplyOptions reply;
  std::optional<std::string> prompt;
  std::string prompt_file;
  bool raw = false;  // the prompt is text as it is, not a chat message
  bool json = false;
  bool margins = false;
};

struct ChatArguments {
  PairOptions pair;
  ReplyOptions reply;
  std::string tools_file;    // empty: no tools
  std::string history_file;  // lines typed, kept from one talk to the next; empty: not kept
};

struct InspectArguments {
  std::vector<std::string> files;
  bool all_tensors = false;
  bool check_tensors = false;
  bool json = false;
};

struct VerifyArguments {
  PairOptions pair;
  std::string prompts_file;  // empty: three built-in prompts
  int64_t limit = 0;         // 0: all of the file
  int64_t max_tokens = 64;
  std::vector<float> temperatures = {0.0F, 1.0F};
  uint64_t seed = 1;
  std::vector<std::string> drafters;  // empty: every one
  VerifyRule rule = VerifyRule::kCompare;
  bool json = false;
};

struct PolicyBenchArguments {
  PairOptions pair;
  std::string prompts_file;  // empty: three built-in prompts
  int64_t limit = 0;         // 0: all of the file
  int64_t max_tokens = 128;  // of a reply
  float temperature = 0.0F;
  uint64_t seed = 1;
  int rounds = 3;
  std::vector<int> lengths = {1, 3, 5, 7};
  std::vector<double> acceptances;  // one trial each; empty: one with the drafter's own guesses
  bool ignore_end = false;
  bool json = false;
};

struct GenerateDataArguments {
  PairOptions pair;
  SamplingOptions sampling;
  std::vector<std::string> prompt_files;
  int64_t limit = 0;  // prompts of each file; 0: all
  bool skip_bad_lines = false;
  std::string chat_template;  // built-in name or file; empty: the model's
  double thinking_share = 1.0;
  int64_t max_tokens = 512;  // of a reply
  int64_t max_turns = 0;     // 0: all
  int64_t shard = 1;
  int64_t shards = 1;
  int concurrency = 4;
  std::string output;
  std::string feature_output;  // empty: none
  FeatureType feature_type = FeatureType::kBF16;
  std::vector<int> taps;  // empty: the drafter's
  bool tap_neighbours = false;
  bool teacher_states = false;  // of the last layer
  bool force = false;
  bool quiet = false;
};

struct EvalReplayArguments {
  std::string target;
  std::string drafter;
  std::string features;
  std::string against;                   // another file of the drafter; empty: none
  std::optional<float> embedding_scale;  // nullopt: from the file, else stored, else 1
  std::string draft_head = "auto";       // as in PairOptions
  KvType kv_type = KvType::kBF16;        // of the drafter's context
  int64_t limit = 0;
  int64_t stride = 0;
  bool attribute = true;
  std::optional<double> min_acceptance;
  int threads = 0;
  std::string isa;
  ActivationMode activation = ActivationMode::kAuto;
  bool json = false;
};

struct EvalPlanArguments {
  std::string costs_file;                // of `octet bench cycle --json`
  std::string acceptance_file;           // of `octet eval --json-file`; empty: one of the next two
  std::vector<double> probabilities;     // by place; empty: not given
  std::optional<double> length;          // mean acceptance length
  std::vector<int64_t> contexts;         // empty: those measured
  std::vector<int> conversations = {1};  // at a time
  std::vector<std::string> workloads;    // CACHED/PROMPT/OUTPUT, or "published"
  bool json = false;
};

struct EvalArguments {
  PairOptions pair;
  SamplingOptions sampling;
  std::vector<std::string> prompt_files;
  int64_t limit = 0;  // prompts of each file; 0: all
  bool skip_bad_lines = false;
  std::string chat_template;  // built-in name or file; empty: the model's
  std::vector<std::string> arms = {"0", "max", "adaptive"};  // draft lengths
  int64_t max_tokens = 128;                                  // of a reply
  int64_t max_turns = 0;                                     // 0: all
  int concurrency = 1;
  bool no_thinking = false;
  bool ignore_end = false;
  std::string json_file;
  std::string csv_file;
  std::string html_file;
  bool json = false;
  std::vector<std::string> diff_files;        // two results to hold against each other instead
  std::optional<EvalReplayArguments> replay;  // `eval replay` instead
  std::optional<EvalPlanArguments> plan;      // `eval plan` instead
};

struct BenchArguments {
  std::optional<PolicyBenchArguments> policy;   // `bench policy`
  std::optional<std::vector<std::string>> ops;  // `bench ops`, google benchmark's flags
  // `bench cycle`:
  PairOptions pair;
  std::vector<int64_t> contexts = {0, 4096, 16384, 32768, 65536};
  std::vector<int64_t> prompts = {512, 4096};
  int rounds = 5;
  int prompt_rounds = 1;
  std::string compare_command;             // another program, timed in every round
  std::string compare_pattern;             // captures its milliseconds; empty: the whole process
  std::vector<std::string> compare_files;  // two results to compare instead of measuring
  bool json = false;
};

struct DraftHeadArguments {
  PairOptions pair;
  int64_t tokens = 0;          // 0: all of the vocabulary
  std::optional<DType> dtype;  // nullopt: the head's own
  std::vector<std::string> text_files;
  std::string prompts_file;
  int64_t limit = 0;         // prompts; 0: all of the file
  int64_t max_tokens = 256;  // of a reply
  std::string output;        // empty: beside the drafter
};

struct ServeArguments {
  PairOptions pair;
  SamplingOptions sampling;  // for requests that do not say
  std::string host = "127.0.0.1";
  int port = 8080;              // 0: any free one
  std::string tls_certificate;  // files; both or none
  std::string tls_key;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> cors_origins;
  std::string name;           // empty: from the file's name
  std::string chat_template;  // built-in name or file; empty: the model's
  int parallel = 4;
  int64_t queue_length = 64;
  int64_t slots = 0;             // 0: parallel + 8
  int64_t cache_limit_mib = 0;   // 0: none
  int64_t max_tokens = 0;        // of replies that do not say; 0: to the end of the context
  std::optional<int> draft_max;  // nullopt: all that the drafter gives; 0: no drafting
  bool adapt_drafts = true;      // of requests that do not say
  int64_t max_body_bytes = 4 << 20;
  int64_t max_connections = 256;
  int ping_seconds = 15;
  int drain_seconds = 30;
  std::string pinned_system_file;
  std::string config_file;  // its flags have joined the others already
};

enum class ConvertFormat { kByName, kGguf, kSafetensors };

struct ConvertArguments {
  std::string input;
  std::string output;
  ConvertFormat format = ConvertFormat::kByName;  // by the output's name: .gguf or a folder
  std::string tokenizer;                          // a checkpoint whose tokenizer to take
  bool dequantize = false;                        // block types become BF16 in safetensors
  int64_t shard_bytes = 5'000'000'000;
  int threads = 0;
  bool force = false;
  bool quiet = false;
};

/// Text to collect or calibrate on: files, replies of the target, or both.
struct CalibrationText {
  std::vector<std::string> files;
  int64_t rollouts = 0;  // replies that the target writes itself
  int64_t rollout_tokens = 512;
  std::string prompts_file;  // of rollouts; empty: the built-in ones
  uint64_t seed = 1;
  int64_t chunk_tokens = 512;
  int64_t max_chunks = 0;  // 0: all

  bool empty() const { return files.empty() && rollouts == 0; }
};

struct QuantizeArguments {
  std::string input;
  std::string output;
  std::string type;                       // a recipe or a weight type
  std::string table_type;                 // of the per-layer embeddings; empty: as the recipe says
  std::vector<std::string> tensor_rules;  // "PATTERN=TYPE"
  std::vector<std::string> excluded;      // patterns; folders of NVFP4 only
  std::string importance;                 // file; empty: none
  std::string tokenizer;
  bool gptq = false;
  bool w4a4 = false;  // calibrate input scales too
  CalibrationText text;
  std::string target;  // of a drafter that is calibrated
  int threads = 0;
  std::string isa;
  bool force = false;
  bool quiet = false;
};

struct ImatrixArguments {
  std::string model;
  std::string output;
  CalibrationText text;
  std::string add_to;  // an importance matrix to add to; empty: none
  int threads = 0;
  std::string isa;
  bool force = false;
  bool quiet = false;
};

struct CompareArguments {
  std::string first;
  std::string second;
  std::vector<std::string> files;  // text, for targets
  std::string target;              // for drafters
  std::string prompts_file;        // for drafters; empty: the built-in ones
  int64_t limit = 0;
  int64_t max_tokens = 128;
  int64_t chunk_tokens = 512;
  int64_t max_chunks = 0;
  std::optional<double> max_kl;
  std::optional<double> min_agreement;
  std::optional<double> max_acceptance_loss;  // percent
  std::vector<std::string> target_flags;      // those given that are about targets only
  std::vector<std::string> drafter_flags;     // and about drafters only
  std::string html;                           // file; empty: none
  int threads = 0;
  std::string isa;
  ActivationMode activation = ActivationMode::kAuto;
  bool json = false;
};

enum class SynthKind { kTarget, kDrafter };
enum class SynthFormat { kGguf, kSafetensors };

struct SynthArguments {
  SynthPreset preset = SynthPreset::kTiny;
  SynthKind kind = SynthKind::kTarget;
  SynthRecipe recipe = SynthRecipe::kBF16;
  SynthFormat format = SynthFormat::kGguf;
  std::string output;
  uint64_t seed = 1;
  bool quiet = false;
};

}  // namespace octet::cli
