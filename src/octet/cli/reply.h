// Replies for the program's own talk: sampling and drafting resolved from options, the engine
// asked, tokens printed as they come, figures gathered over all replies of the program's run.
// Shared by `octet run` and `octet chat`. Not for what a conversation holds (conversation.h).
// Invariant: what is printed or measured never influences what is generated.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "octet/chat/chat_format.h"
#include "octet/cli/options.h"
#include "octet/cli/pair.h"
#include "octet/cli/reply_printer.h"
#include "octet/cli/statistics.h"
#include "octet/cli/terminal.h"
#include "octet/engine/engine.h"
#include "octet/engine/generator.h"
#include "octet/grammar/grammar.h"

namespace octet::cli {

/// The sampling to use: as asked, else as the checkpoint recommends, else greedy.
SamplingParams resolve_sampling(const SamplingOptions& options, const Checkpoint& checkpoint);

/// Contexts that live at a time: those kept, and another one for --compare.
int64_t texts_at_a_time(const ReplyOptions& options, int64_t kept_texts);

/// "greedy" or "temperature 1, top-k 64, top-p 0.95, seed 7"; with penalties and biases, where
/// there are any: equal texts are equal sampling.
std::string describe_sampling(const SamplingParams& sampling);

/// How the messages are put to the model.
ChatOptions chat_options(const ReplyOptions& options);

struct ReplyRequest {
  std::vector<TokenId> prompt;
  /// What may be called; a call of anything else is speech. Empty: any name is a call.
  std::vector<std::string> tool_names;
  std::shared_ptr<const Grammar> grammar;  // null: none
};

class Replier {
 public:
  /// Both must outlive the replier. `kept_texts`: texts whose keys and values stay for later
  /// prompts. Throws Error for options that contradict each other or the pair.
  Replier(Pair& pair, const ReplyOptions& options, int64_t kept_texts);

  /// The options have changed: they hold from the next reply on. The seed stays where none is
  /// asked for. Throws Error as the constructor does.
  void apply_options();

  /// Streams to `stream` unless it is null. Ends early once `interrupted` is set; it may be null.
  /// Throws Error for a request that cannot be served.
  Reply reply(ReplyRequest asked, TextStream* stream, const std::atomic<bool>* interrupted);

  const SamplingParams& sampling() const { return request_.sampling; }
  const Statistics& statistics() const { return statistics_; }
  /// Why nothing is drafted; empty while drafting.
  const std::string& undrafted_reason() const { return undrafted_reason_; }
  MemoryFigures memory() const;

 private:
  EngineRequest engine_request(const ReplyRequest& asked) const;
  /// The reply again, without company and from an empty cache; held to what replies are held to.
  GenerateResult generate_alone(
      const ReplyRequest& asked, bool drafted, const std::atomic<bool>* interrupted
  );
  void compare(const ReplyRequest& asked, const std::atomic<bool>* interrupted);

  Pair& pair_;
  const ReplyOptions& options_;
  GenerateRequest request_;  // all but the prompt
  std::string undrafted_reason_;
  Statistics statistics_;
  Engine engine_;
  std::unique_ptr<Generator> trial_;  // for comparisons: it feeds no drafter where none drafts
};

/// The figures so far, with the legend of the marks, on standard error.
void print_summary(const Pair& pair, const Replier& replier, const TextStream& stream);

}  // namespace octet::cli
