#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/function_ref.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/eval_report.h"
#include "octet/cli/pair.h"
#include "octet/cli/reply.h"
#include "octet/cli/terminal.h"
#include "octet/evaluate/digest.h"
#include "octet/formats/atomic_file.h"
#include "octet/formats/checkpoint_files.h"
#include "octet/kernels/ops.h"
#include "octet/quantize/output_place.h"

namespace octet::cli {
namespace {

PromptSuite read_suites(const EvalArguments& arguments) {
  PromptSuite suite;
  for (const std::string& path : arguments.prompt_files) {
    read_suite(
        path, arguments.limit, arguments.skip_bad_lines ? BadLines::kSkip : BadLines::kRefuse, suite
    );
  }
  return suite;
}

/// `most`: drafts that the drafter makes; 0 without one. Throws Error(kInvalidArgument) for more.
EvalArmSettings arm_settings(const std::string& text, int most) {
  if (text != "0" && most == 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("--drafts {} needs a drafter (-md); without one use --drafts 0", text)
    );
  }
  if (text == "adaptive") {
    return {"adaptive", most, true};
  }
  const int length = text == "max" ? most : std::stoi(text);
  if (length > most) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--drafts {} asks for more than the {} drafts that this drafter makes; use {} or max",
            text,
            most,
            most
        )
    );
  }
  return {length == 0 ? "plain" : fmt::format("{} drafts", length), length, false};
}

/// Every arm once: "7" and "max" may be the same.
std::vector<EvalArmSettings> arms_of(const EvalArguments& arguments, const Pair& pair) {
  std::vector<EvalArmSettings> arms;
  for (const std::string& text : arguments.arms) {
    EvalArmSettings arm = arm_settings(text, pair.drafter->max_drafts());
    const bool known = std::any_of(arms.begin(), arms.end(), [&](const EvalArmSettings& other) {
      return other.name == arm.name;
    });
    if (!known) {
      arms.push_back(std::move(arm));
    }
  }
  return arms;
}

std::vector<std::pair<std::string, std::string>> facts_of(
    const PairOptions& options, const Pair& pair
) {
  std::vector<std::pair<std::string, std::string>> facts = {{"target", options.model}};
  if (pair.draft_checkpoint != nullptr) {
    facts.emplace_back("drafter", options.draft_model);
    facts.emplace_back("scale", pair.embedding_scale);
    facts.emplace_back("draft head", pair.draft_head.empty() ? "whole" : pair.draft_head);
  }
  facts.emplace_back("backend", pair.machine);
  return facts;
}

/// All that replies, and which of them there are, depend on beside the models and the machine.
std::vector<std::pair<std::string, std::string>> settings_of(
    const EvalArguments& arguments,
    const Pair& pair,
    const EvalRequest& request,
    const ChatTemplate& chat_template
) {
  Digest template_digest;
  template_digest.add_text(chat_template.source());
  return {
      {"prompts",
       fmt::format("{} (digest {:016x})", request.prompts.size(), suite_digest(request.prompts))},
      {"chat template", fmt::format("digest {:016x}", template_digest.value())},
      {"sampling", describe_sampling(request.sampling)},
      {"thinking", request.thinking ? "on" : "off"},
      {"most tokens",
       fmt::format("{}{}", request.max_tokens, request.ignore_end ? ", always" : "")},
      {"turns", arguments.max_turns == 0 ? "all" : fmt::format("{}", arguments.max_turns)},
      {"context", fmt::format("{}", pair.context)},
      {"kv type", std::string(kv_type_name(pair.kv_type))},
      {"activation", std::string(activation_mode_name(arguments.pair.activation))},
      {"concurrency", fmt::format("{}", request.concurrency)}};
}

/// Refuses results in place of what is read, or where none can be, before the models run.
void prepare_files(const EvalArguments& arguments, const Pair& pair) {
  const std::vector<std::string> inputs =
      all_inputs({pair.target_checkpoint, pair.draft_checkpoint}, arguments.prompt_files);
  const std::vector<std::string> outputs = {
      arguments.json_file, arguments.csv_file, arguments.html_file};
  refuse_one_place_twice(outputs, "two of --json-file, --csv and --html");
  for (const std::string& path : outputs) {
    if (!path.empty()) {
      prepare_output(inputs, path, 0, ExistingOutput::kReplace);
    }
  }
}

void write_file(const std::string& path, FunctionRef<std::string()> text) {
  if (!path.empty()) {
    const std::string content = text();
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(content)));
    file.finish();
  }
}

/// A run that no prompt fits is no result. Throws Error with the first reason.
void require_replies(const EvalReport& report) {
  for (size_t a = 0; a < report.summaries.size(); ++a) {
    if (report.summaries[a].replies == 0) {
      const EvalArm& arm = report.evaluation.arms[a];
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "no prompt got a reply from {}; {}", arm.settings.name, first_failure(report, a)
          )
      );
    }
  }
}

}  // namespace

int eval(const EvalArguments& arguments) {
  if (arguments.replay) {
    return eval_replay(*arguments.replay);
  }
  if (arguments.plan) {
    return eval_plan(*arguments.plan);
  }
  if (!arguments.diff_files.empty()) {
    fmt::print("{}", eval_diff(arguments.diff_files[0], arguments.diff_files[1]));
    return 0;
  }
  EvalReport report;
  PromptSuite suite = read_suites(arguments);  // before the models: a wrong file is told at once
  PairNeeds needs;
  needs.texts = arguments.concurrency;
  Pair pair = load_pair(arguments.pair, std::move(needs));
  prepare_files(arguments, pair);
  const ChatTemplate chat_template =
      load_chat_template(*pair.target_checkpoint, arguments.chat_template);
  EvalRequest request;
  request.prompts = suite.prompts;
  request.sampling = resolve_sampling(arguments.sampling, *pair.target_checkpoint);
  request.thinking = !arguments.no_thinking;
  request.max_tokens = arguments.max_tokens;
  request.max_turns = arguments.max_turns;
  request.concurrency = arguments.concurrency;
  request.ignore_end = arguments.ignore_end;
  request.arms = arms_of(arguments, pair);
  report.facts = facts_of(arguments.pair, pair);
  report.settings = settings_of(arguments, pair, request, chat_template);

  Progress progress(!arguments.json);
  {
    Engine engine(
        *pair.target, *pair.drafter, pair.tokenizer, pair.engine_options(arguments.concurrency)
    );
    report.evaluation = evaluate(engine, chat_template, pair.tokenizer, request, [&](int64_t done) {
      progress.show(fmt::format("Prompt {} of {}", done, request.prompts.size()));
    });
  }
  progress.clear();
  for (const EvalArm& arm : report.evaluation.arms) {
    report.summaries.push_back(summarize(arm, request.prompts));
  }
  report.prompts = std::move(suite.prompts);
  report.skipped = std::move(suite.skipped);
  const std::string json = eval_json(report);
  fmt::print("{}", arguments.json ? fmt::format("{}\n", json) : eval_table(report));
  std::fflush(stdout);  // a file that cannot be written must not cost the figures
  write_file(arguments.json_file, [&] { return fmt::format("{}\n", json); });
  write_file(arguments.csv_file, [&] { return eval_csv(report); });
  write_file(arguments.html_file, [&] { return eval_html(report); });
  require_replies(report);  // the files tell what became of each prompt
  return report.evaluation.differing == 0 ? 0 : 1;
}

}  // namespace octet::cli
