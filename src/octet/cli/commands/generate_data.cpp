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
#include "octet/evaluate/data_outputs.h"
#include "octet/formats/journal_file.h"
#include "octet/quantize/output_place.h"

namespace octet::cli {
namespace {

/// The layers to record: as asked for or the drafter's, and where wanted those beside them and the
/// last one.
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
  if (arguments.teacher_states && known.insert(layers - 1).second) {
    taps.push_back(layers - 1);
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
        "octet: {} got no reply: {}\n",
        place_of(suite.prompts[static_cast<size_t>(prompt.prompt)], prompt.prompt),
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

void prepare_outputs(const GenerateDataArguments& arguments) {
  std::vector<std::string> places;  // of both files, as they grow and when they are whole
  for (const std::string& path : {arguments.output, arguments.feature_output}) {
    if (!path.empty()) {
      places.insert(places.end(), {path, JournalFile::partial_path(path)});
    }
  }
  refuse_one_place_twice(places, "-o and --features");
  std::vector<std::string> inputs = arguments.prompt_files;
  inputs.insert(inputs.end(), {arguments.pair.model, arguments.pair.draft_model});
  const auto prepare = [&](const std::string& path, ExistingOutput existing) {
    prepare_output(inputs, path, 0, existing);
    prepare_output(inputs, JournalFile::partial_path(path), 0, ExistingOutput::kReplace);
  };
  const ExistingOutput existing =
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse;
  prepare(arguments.output, existing);
  if (!arguments.feature_output.empty()) {
    const bool half = named_by_half(arguments.output, arguments.feature_output);
    prepare(arguments.feature_output, half ? ExistingOutput::kReplace : existing);
  }
}

}  // namespace

int generate_data(const GenerateDataArguments& arguments) {
  prepare_outputs(arguments);
  const BadLines bad = arguments.skip_bad_lines ? BadLines::kSkip : BadLines::kRefuse;
  PromptSuite suite;
  for (const std::string& path : arguments.prompt_files) {
    read_suite(path, arguments.limit, bad, suite);
  }
  PairNeeds needs;
  // Features come from a pass of their own.
  needs.texts = arguments.concurrency + (arguments.feature_output.empty() ? 0 : 1);
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
  request.arithmetic =
      fmt::format("{} {}", pair.ops->name(), activation_mode_name(arguments.pair.activation));
  request.output = arguments.output;
  request.feature_output = arguments.feature_output;
  request.replace = arguments.force;
  request.feature_type = arguments.feature_type;
  request.unanswerable = bad;
  if (!arguments.feature_output.empty()) {
    request.taps = taps_of(arguments, pair);
  }

  const ChatTemplate chat_template =
      load_chat_template(*pair.target_checkpoint, arguments.chat_template);
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
