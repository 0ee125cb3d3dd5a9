// One reply from request to screen: sampling resolved, tokens streamed as they come, thoughts told
// from speech, figures gathered over all replies of the program's run. Shared by `octet run` and
// `octet chat`. Invariant: what is printed never influences what is generated.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "octet/chat/chat_format.h"
#include "octet/cli/options.h"
#include "octet/cli/pair.h"
#include "octet/cli/statistics.h"
#include "octet/cli/terminal.h"
#include "octet/engine/generator.h"

namespace octet::cli {

/// The sampling to use: as asked, else as the checkpoint recommends, else greedy.
SamplingParams resolve_sampling(const SamplingOptions& options, const Checkpoint& checkpoint);

/// "greedy" or "temperature 1, top-k 64, top-p 0.95, seed 7".
std::string describe_sampling(const SamplingParams& sampling);

/// How the messages are put to the model.
ChatOptions chat_options(const ReplyOptions& options);

struct Reply {
  GenerateResult result;
  std::string speech;  // without thoughts and control tokens
  std::string thinking;
  std::vector<std::string> tool_calls;  // raw: "call:name{...}"
};

class Replier {
 public:
  /// Both must outlive the replier. Throws Error for options that contradict each other or the
  /// pair.
  Replier(Pair& pair, const ReplyOptions& options);

  /// Streams to `stream` unless it is null. `cancelled` may be null.
  Reply reply(std::vector<TokenId> prompt, TextStream* stream, const std::atomic<bool>* cancelled);

  const SamplingParams& sampling() const { return request_.sampling; }
  const Statistics& statistics() const { return statistics_; }
  /// Why nothing is drafted; empty while drafting.
  const std::string& undrafted_reason() const { return undrafted_reason_; }
  MemoryFigures memory() const;

 private:
  void compare(const GenerateRequest& request);

  Pair& pair_;
  const ReplyOptions& options_;
  Generator generator_;
  GenerateRequest request_;  // all but the prompt
  std::string undrafted_reason_;
  Statistics statistics_;
};

/// The figures so far, with the legend of the marks, on standard error.
void print_summary(const Pair& pair, const Replier& replier, const TextStream& stream);

}  // namespace octet::cli
