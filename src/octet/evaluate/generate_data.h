// Has a target answer prompts, for whoever trains or judges a drafter: the texts as tokens, one
// JSON object a reply, and on wish the features that the target had at every token
// (feature_file.h). Not for figures (evaluation.h). Invariants: what is written for a prompt
// depends on the prompt, its place in the list and the settings, never on concurrency, shards or
// interruptions; the files get their names when they are whole, and until then a run takes up what
// an earlier one left.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/chat/chat_template.h"
#include "octet/engine/engine.h"
#include "octet/evaluate/feature_file.h"
#include "octet/evaluate/prompt_suite.h"
#include "octet/models/target_model.h"
#include "octet/sampling/sampling_params.h"

namespace octet {

struct DataRequest {
  std::span<const SuitePrompt> prompts;
  SamplingParams sampling;      // prompt i uses seed + i; penalties are not allowed
  double thinking_share = 1.0;  // of the prompts, chosen by seed and place: the rest does not think
  int64_t max_tokens = 512;     // of a reply
  int64_t max_turns = 0;        // of a conversation; 0: all
  int64_t shard = 1;            // 1 .. shards
  int64_t shards = 1;
  int concurrency = 1;  // conversations at a time
  int draft_max = 0;    // of the engine's drafter: changes the speed alone
  uint64_t target_digest = 0;
  std::string
      arithmetic;         // whose rounding it is: backend and activations, as settings_digest needs
  std::vector<int> taps;  // layers whose features are recorded
  FeatureType feature_type = FeatureType::kBF16;
  std::string output;                         // JSON lines
  std::string feature_output;                 // empty: no features
  bool replace = false;                       // files that have these names
  BadLines unanswerable = BadLines::kRefuse;  // about prompts that do not fit the context
};

/// A prompt that got no reply.
struct UnansweredPrompt {
  int64_t prompt = 0;
  std::string why;
};

struct DataResult {
  int64_t replies = 0;  // in the file, those of earlier runs included
  int64_t tokens = 0;   // written by this run
  int64_t resumed_conversations = 0;
  std::vector<UnansweredPrompt> unanswered;  // of this run
};

/// The prompts of a shard, ascending: every shards-th.
std::vector<int64_t> shard_prompts(int64_t prompts, int64_t shard, int64_t shards);
/// Whether prompt i is to think.
bool wants_thinking(uint64_t seed, int64_t prompt, double share);
/// Tells settings apart: those that the texts and their features depend on, so not the shard.
uint64_t settings_digest(
    const DataRequest& request, const Engine& engine, const ChatTemplate& chat_template
);

/// `engine` runs `target` and is idle and used by nobody else meanwhile; its parallel must be >=
/// concurrency. Throws Error: kMismatch where an earlier run with other settings left its files,
/// kInvalidArgument for a prompt that does not fit (unless they are skipped) and for files that
/// have the names already, kIo, and what ended a reply.
DataResult generate_data(
    Engine& engine,
    TargetModel& target,
    const ChatTemplate& chat_template,
    const std::shared_ptr<const Tokenizer>& tokenizer,
    const DataRequest& request,
    FunctionRef<void(int64_t done, int64_t conversations)> on_batch
);

}  // namespace octet
