#include <charconv>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "octet/cli/argument_groups.h"

namespace octet::cli {
namespace {

/// "2/5".
void parse_shard(const std::string& text, GenerateDataArguments& data) {
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, data.shard);
  const bool slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second =
      slash ? std::from_chars(first.ptr + 1, end, data.shards) : std::from_chars_result{end, {}};
  if (!slash || second.ec != std::errc() || second.ptr != end || data.shard < 1 ||
      data.shard > data.shards) {
    throw CLI::ValidationError(
        "--shard", fmt::format("expects I/N with I from 1 to N, not '{}'", text)
    );
  }
}

void add_features(CLI::App& app, GenerateDataArguments& data) {
  CLI::Option* features =
      app.add_option(
             "--features", data.feature_output, "write what the target has at every token here"
      )
          ->type_name("FILE")
          ->group(kGroupOutput);
  app.add_option(
         "--feature-type", data.feature_type, "bf16 (default), or f32: exact, and twice as large"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, FeatureType>{
          {"bf16", FeatureType::kBF16}, {"f32", FeatureType::kF32}}))
      ->option_text("bf16|f32")
      ->needs(features)
      ->group(kGroupOutput);
  app.add_option(
         "--taps",
         data.taps,
         "layers to record, from 0 (default: those that the drafter of -md reads)"
  )
      ->check(CLI::Range(0, 65535))
      ->type_name("N...")
      ->needs(features)
      ->group(kGroupOutput);
  app.add_flag(
         "--tap-neighbours",
         data.tap_neighbours,
         "record the layers beside those too, so that `octet eval replay` can tell shifted taps"
  )
      ->needs(features)
      ->group(kGroupOutput);
  app.add_flag(
         "--teacher-states",
         data.teacher_states,
         "record the last layer too, of which `octet-train drafter --features` forms the "
         "distributions that teach"
  )
      ->needs(features)
      ->group(kGroupOutput);
}

}  // namespace

void add_generate_data(CLI::App& app, GenerateDataArguments& data) {
  add_pair(app, data.pair);
  add_sampling(app, data.sampling);
  app.get_option("--seed")->required();
  app.add_option(
         "--prompts",
         data.prompt_files,
         "prompts: one JSON object a line, with \"turns\": [text, ...]; repeatable"
  )
      ->required()
      ->expected(1)
      ->take_all()
      ->type_name("FILE.jsonl")
      ->group(kGroupPrompt);
  add_reply_limits(app, data.limit, data.max_tokens);
  app.add_flag(
         "--skip-bad-lines",
         data.skip_bad_lines,
         "report lines that are no prompts and prompts that do not fit the context, and go on"
  )
      ->group(kGroupPrompt);
  add_chat_template(app, data.chat_template, kGroupPrompt);
  app.add_option("--turns", data.max_turns, "most turns of a conversation; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(kGroupPrompt);
  app.add_option(
         "--thinking", data.thinking_share, "share of the prompts that are to think (default 1)"
  )
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X")
      ->group(kGroupPrompt);
  app.add_option_function<std::string>(
         "--shard",
         [&data](const std::string& text) { parse_shard(text, data); },
         "do the I-th of N equal shares of the prompts"
  )
      ->type_name("I/N")
      ->group(kGroupPrompt);
  app.add_option("--concurrency", data.concurrency, "conversations at a time (default 4)")
      ->check(CLI::Range(1, 256))
      ->type_name("N")
      ->group(kGroupMachine);
  app.add_option("-o,--output", data.output, "JSON lines, one a reply")
      ->required()
      ->type_name("FILE.jsonl")
      ->group(kGroupOutput);
  add_features(app, data);
  app.add_flag("--force", data.force, "replace files that are there")->group(kGroupOutput);
  app.add_flag("-q,--quiet", data.quiet, "no progress and no summary")->group(kGroupOutput);
}

void add_eval_replay(CLI::App& app, EvalReplayArguments& replay) {
  app.add_option("-m,--model", replay.target, "target, of which embedding and head are read")
      ->required()
      ->type_name("PATH")
      ->group(kGroupModels);
  app.add_option("--draft-model", replay.drafter, "DFlash drafter; also spelled -md")
      ->required()
      ->type_name("PATH")
      ->group(kGroupModels);
  add_optional(
      app,
      "--embedding-scale",
      replay.embedding_scale,
      "factor on the drafter's token embeddings (default: from its file, else as stored beside it, "
      "else 1)",
      CLI::PositiveNumber,
      kGroupModels
  );
  add_draft_head_choice(app, replay.draft_head);
  add_threads(app, replay.threads, kGroupMachine);
  add_isa(app, replay.isa, kGroupMachine);
  add_activation(app, replay.activation, kGroupMachine);
  add_kv_type(app, replay.kv_type);
  app.add_option("--features", replay.features, "what `octet generate-data --features` wrote")
      ->required()
      ->type_name("FILE")
      ->group(kGroupPrompt);
  app.add_option("--limit", replay.limit, "replies; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(kGroupPrompt);
  app.add_option(
         "--stride",
         replay.stride,
         "draft at every N-th token; 0 (default): where drafting comes to, as in use"
  )
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(kGroupDrafting);
  app.add_option(
         "--against", replay.against, "the same drafter in another type: what quantizing cost"
  )
      ->type_name("PATH")
      ->group(kGroupModels);
  app.add_flag("!--no-attribution", replay.attribute, "only the drafter as it is")
      ->group(kGroupDrafting);
  add_optional(
      app,
      "--min-acceptance",
      replay.min_acceptance,
      "exit code 1 below this acceptance length",
      CLI::NonNegativeNumber,
      kGroupOutput
  );
  app.add_flag("--json", replay.json, "one JSON object")->group(kGroupOutput);
}

}  // namespace octet::cli
