#include "octet/evaluate/generate_data.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/pair.h"
#include "octet/cli/reply.h"
#include "octet/cli/terminal.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/quantize/output_place.h"

namespace octet::cli {
namespace {

/// The layers to record: as asked for or the drafter's, and where wanted those beside them.
std::vector<int> taps_of(const GenerateDataArguments& arguments, const Pair& pair) {
  std::vector<int> taps = arguments.taps;
  if (taps.empty()) {
    taps.assign(pair.drafter->taps().begin(), pair.drafter->taps().end());
  }
  if (taps.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--features needs to know which layers: name a drafter with -md, or layers with --taps"
    );
  }
  const auto layers = static_cast<int>(pair.target->shape().layers);
  std::set<int> known(taps.begin(), taps.end());
  const std::vector<int> asked = taps;
  for (const int tap : asked) {
    if (tap >= layers) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("--taps {}: the target has layers 0 to {}", tap, layers - 1)
      );
    }
    for (const int beside : {tap - 1, tap + 1}) {
      if (arguments.tap_neighbours && beside >= 0 && beside < layers &&
          known.insert(beside).second) {
        taps.push_back(beside);
      }
    }
  }
  return taps;
}

void report(
    const GenerateDataArguments& arguments, const PromptSuite& suite, const DataResult& result
) {
  for (const SkippedLine& line : suite.skipped) {
    fmt::print(stderr, "octet: skipped {}: line {}: {}\n", line.path, line.line, line.why);
  }
  for (const UnansweredPrompt& prompt : result.unanswered) {
    fmt::print(
        stderr,
        "octet: no reply to prompt {} ('{}'): {}\n",
        prompt.prompt + 1,
        suite.prompts[static_cast<size_t>(prompt.prompt)].id,
        prompt.why
    );
  }
  if (!arguments.quiet) {
    fmt::print(
        "{}: {} replies, {} tokens of them written now; {} conversations were there already\n",
        arguments.output,
        result.replies,
        result.tokens,
        result.resumed_conversations
    );
  }
}

}  // namespace

int generate_data(const GenerateDataArguments& arguments) {
  const ExistingOutput existing =
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse;
  std::vector<std::string> inputs = arguments.prompt_files;
  inputs.push_back(arguments.pair.model);
  prepare_output(inputs, arguments.output, 0, existing);
  if (!arguments.feature_output.empty()) {
    prepare_output(inputs, arguments.feature_output, 0, existing);
  }
  const BadLines bad = arguments.skip_bad_lines ? BadLines::kSkip : BadLines::kRefuse;
  PromptSuite suite;
  for (const std::string& path : arguments.prompt_files) {
    read_suite(path, arguments.limit, bad, suite);
  }
  PairNeeds needs;
  needs.texts = arguments.concurrency;
  Pair pair = load_pair(arguments.pair, std::move(needs));
  DataRequest request;
  request.prompts = suite.prompts;
  request.sampling = resolve_sampling(arguments.sampling, *pair.target_checkpoint);
  request.thinking_share = arguments.thinking_share;
  request.max_tokens = arguments.max_tokens;
  request.max_turns = arguments.max_turns;
  request.shard = arguments.shard;
  request.shards = arguments.shards;
  request.concurrency = arguments.concurrency;
  request.draft_max = pair.drafter->max_drafts();
  request.target_digest = checkpoint_digest(*pair.target_checkpoint);
  request.output = arguments.output;
  request.feature_output = arguments.feature_output;
  request.feature_type = arguments.feature_type;
  request.unanswerable = bad;
  if (!arguments.feature_output.empty()) {
    request.taps = taps_of(arguments, pair);
  }

  const ChatTemplate chat_template = load_chat_template(*pair.target_checkpoint);
  Progress progress(!arguments.quiet);
  Engine engine(
      *pair.target, *pair.drafter, pair.tokenizer, pair.engine_options(arguments.concurrency)
  );
  const DataResult result = octet::generate_data(
      engine,
      *pair.target,
      chat_template,
      pair.tokenizer,
      request,
      [&](int64_t done, int64_t all) {
        progress.show(fmt::format("Conversation {} of {}", done, all));
      }
  );
  progress.clear();
  report(arguments, suite, result);
  return 0;
}

}  // namespace octet::cli
