#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "octet/cli/argument_groups.h"

namespace octet::cli {
namespace {

/// "0", "3", "max" or "adaptive".
std::string check_arm(const std::string& text) {
  int length = 0;
  const bool number =
      CLI::detail::lexical_cast(text, length) && length >= 0 && length <= kMaxDrafts;
  return number || text == "max" || text == "adaptive"
             ? std::string()
             : fmt::format("expects 0 to {}, max or adaptive, not '{}'", kMaxDrafts, text);
}

void add_outputs(CLI::App& app, EvalArguments& eval) {
  app.add_option("--html", eval.html_file, "write a self-contained page with plots")
      ->type_name("FILE")
      ->group(kGroupOutput);
  app.add_option("--csv", eval.csv_file, "write a line a reply")
      ->type_name("FILE")
      ->group(kGroupOutput);
  app.add_option("--json-file", eval.json_file, "write what --json prints, for `octet eval diff`")
      ->type_name("FILE")
      ->group(kGroupOutput);
  app.add_flag("--json", eval.json, "one JSON object")->group(kGroupOutput);
}

void add_plan(CLI::App& app, EvalPlanArguments& plan) {
  app.add_option("costs", plan.costs_file, "what `octet bench cycle --json` printed for the pair")
      ->required()
      ->type_name("COSTS.json");
  auto* acceptance = app.add_option_group("acceptance", "one of");
  acceptance
      ->add_option("--eval", plan.acceptance_file, "by position, from `octet eval --json-file`")
      ->type_name("FILE");
  acceptance
      ->add_option(
          "--probabilities",
          plan.probabilities,
          "that a draft is right when those before it are, by place; the last counts for the rest"
      )
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P...");
  acceptance->add_option("--length", plan.length, "mean acceptance length with all drafts")
      ->type_name("X");
  acceptance->require_option(1);
  app.add_option("--contexts", plan.contexts, "tokens before the step; default: as measured")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N...");
  app.add_option("--concurrency", plan.conversations, "conversations at a time (default 1)")
      ->check(CLI::Range(1, 256))
      ->type_name("N...");
  app.add_option(
         "--workload",
         plan.workloads,
         "benchmarks as CACHED/PROMPT/OUTPUT tokens, 32K/2K/256 say, with each --concurrency; "
         "published: the shapes that published figures use"
  )
      ->option_text("C/P/O|published ...");
  app.add_flag("--json", plan.json, "one JSON object");
}

}  // namespace

void add_eval(CLI::App& app, EvalArguments& eval) {
  add_pair(app, eval.pair);
  app.get_option("--model")->required(false);  // `diff` has none
  add_sampling(app, eval.sampling);
  app.add_option(
         "--prompts",
         eval.prompt_files,
         "suites: one JSON object a line, with \"turns\": [text, ...]; repeatable"
  )
      ->expected(1)
      ->take_all()
      ->type_name("FILE.jsonl")
      ->group(kGroupPrompt);
  add_reply_limits(app, eval.limit, eval.max_tokens);
  app.add_flag(
         "--skip-bad-lines", eval.skip_bad_lines, "report lines that are no prompts and go on"
  )
      ->group(kGroupPrompt);
  add_chat_template(app, eval.chat_template, kGroupPrompt);
  app.add_option("--turns", eval.max_turns, "most turns of a conversation; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(kGroupPrompt);
  app.add_flag("--no-think", eval.no_thinking, "ask the model to speak without thinking first")
      ->group(kGroupPrompt);
  app.add_flag("--ignore-eos", eval.ignore_end, "go on after end tokens, to -n")
      ->group(kGroupPrompt);
  app.add_option(
         "--drafts",
         eval.arms,
         "ways to decode, in turn: 0 (plain), 1, 2 ..., max, adaptive (default 0 max adaptive)"
  )
      ->check(CLI::Validator(check_arm, "", "draft length"))
      ->option_text("N|max|adaptive ...")
      ->group(kGroupDrafting);
  app.add_option("--concurrency", eval.concurrency, "conversations at a time (default 1)")
      ->check(CLI::Range(1, 256))
      ->type_name("N")
      ->group(kGroupMachine);
  add_outputs(app, eval);

  CLI::App* diff = app.add_subcommand("diff", "hold two results of --json-file against each other");
  diff->add_option("results", eval.diff_files, "two files")
      ->required()
      ->expected(2)
      ->type_name("OLD NEW");
  CLI::App* replay = app.add_subcommand(
      "replay", "acceptance on recorded features, without the target's layers, and why it is low"
  );
  auto replay_arguments = std::make_shared<EvalReplayArguments>();
  add_eval_replay(*replay, *replay_arguments);
  replay->callback([&eval, replay_arguments] { eval.replay = *replay_arguments; });
  CLI::App* plan = app.add_subcommand(
      "plan", "what drafting will be worth, from measured costs and an acceptance"
  );
  auto plan_arguments = std::make_shared<EvalPlanArguments>();
  add_plan(*plan, *plan_arguments);
  plan->callback([&eval, plan_arguments] { eval.plan = *plan_arguments; });
  app.final_callback([&app, &eval] {
    if (!eval.diff_files.empty() || eval.replay || eval.plan) {
      return;
    }
    for (const char* needed : {"--model", "--prompts"}) {
      if (app.get_option(needed)->count() == 0) {
        throw CLI::RequiredError(needed);
      }
    }
  });
}

}  // namespace octet::cli
