#include "octet/cli/arguments.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/argument_groups.h"
#include "octet/cli/quantize_arguments.h"
#include "octet/cli/version.h"

namespace octet::cli {

const char* const kVersion = "octet " OCTET_VERSION;

namespace {

/// llama.cpp's two-letter short flags, which CLI11 would read as -m d and -n p.
std::vector<std::string> with_long_flags(std::span<const std::string> arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    if (argument == "-md" || argument.rfind("-md=", 0) == 0) {
      result.push_back("--draft-model" + argument.substr(3));
    } else if (argument == "-np" || argument.rfind("-np=", 0) == 0) {
      result.push_back("--parallel" + argument.substr(3));
    } else {
      result.push_back(argument);
    }
  }
  return result;
}

CLI::Option* add_verify_rule(CLI::App& app, VerifyRule& rule) {
  return app
      .add_option(
          "--verify-rule",
          rule,
          "compare (default): keep drafts that equal the target's own choice; "
          "ratio: min(1, p/q), whose text for a seed depends on the drafter and on the number of "
          "drafts, which is therefore fixed"
      )
      ->transform(CLI::CheckedTransformer(std::map<std::string, VerifyRule>{
          {"compare", VerifyRule::kCompare}, {"ratio", VerifyRule::kRatio}}))
      ->option_text("compare|ratio");
}

void add_drafting(CLI::App& app, ReplyOptions& reply) {
  add_optional(
      app,
      "--draft-max",
      reply.draft_max,
      "drafts a step; 0 turns drafting off; default: all the drafter gives",
      CLI::Range(0, kMaxDrafts),
      kGroupDrafting
  );
  add_draft_policy(app, reply.adapt_drafts);
  add_verify_rule(app, reply.rule)->group(kGroupDrafting);
  app.add_option_function<std::string>(
         "--draft-choice",
         [&reply](const std::string& name) {
           reply.draft_choice = name == "argmax"    ? DraftChoice::kArgmax
                                : name == "coupled" ? DraftChoice::kCoupled
                                                    : DraftChoice::kBySureness;
         },
         "at temperature > 0 drafts are the likeliest token, or drawn with the target's noise, or "
         "(sureness, default) the one where the drafter is sure and the other where it is not"
  )
      ->check(CLI::IsMember({"sureness", "argmax", "coupled"}))
      ->option_text("sureness|argmax|coupled")
      ->group(kGroupDrafting);
  app.add_option(
         "--compare",
         reply.compare_rounds,
         "afterwards measure plain against drafted decoding, N rounds in turn"
  )
      ->check(CLI::Range(0, 1000))
      ->type_name("N")
      ->group(kGroupDrafting);
}

void add_reply(CLI::App& app, ReplyOptions& reply) {
  app.add_option("-n,--predict", reply.max_tokens, "most tokens of a reply (default 512)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->type_name("N")
      ->group(kGroupPrompt);
  app.add_option("--system", reply.system, "system message")
      ->type_name("TEXT")
      ->group(kGroupPrompt);
  add_chat_template(app, reply.chat_template, kGroupPrompt);
  app.add_flag("--no-think", reply.no_thinking, "ask the model to speak without thinking first")
      ->group(kGroupPrompt);
  add_optional(
      app,
      "--thinking-budget",
      reply.thinking_budget,
      "thoughts of at most N tokens: the model is asked, and held to it",
      CLI::Range(int64_t{1}, int64_t{1} << 20),
      kGroupPrompt
  );
  app.add_flag("--conversational", reply.conversational, "ask for brief, natural replies")
      ->group(kGroupPrompt);
  app.add_option("--stop", reply.stop_strings, "end the reply before this text; repeatable")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all()
      ->group(kGroupPrompt);
  app.add_flag("--ignore-eos", reply.ignore_end, "go on after end tokens")->group(kGroupPrompt);
  add_sampling(app, reply.sampling);
  add_drafting(app, reply);
  auto* hide = app.add_flag_callback(
      "--hide-thinking", [&reply] { reply.thoughts = ThoughtView::kHide; }, "do not print thoughts"
  );
  hide->group(kGroupOutput);
  app.add_flag_callback(
         "--fold-thinking",
         [&reply] { reply.thoughts = ThoughtView::kFold; },
         "print one line for a thought"
  )
      ->excludes(hide)
      ->group(kGroupOutput);
  app.add_option(
         "--marks",
         reply.marks,
         "how drafted tokens are told from the target's own; auto: colour on a terminal, else off"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, Marks>{
          {"auto", Marks::kAuto},
          {"color", Marks::kColor},
          {"text", Marks::kText},
          {"off", Marks::kOff}}))
      ->option_text("auto|color|text|off")
      ->group(kGroupOutput);
  app.add_flag("-q,--quiet", reply.quiet, "no summary")->group(kGroupOutput);
}

void add_run(CLI::App& app, RunArguments& run) {
  add_pair(app, run.pair);
  auto* prompt = app.add_option_function<std::string>(
      "-p,--prompt",
      [&run](const std::string& text) { run.prompt = text; },
      "the prompt; default: standard input"
  );
  prompt->type_name("TEXT")->group(kGroupPrompt);
  app.add_option("-f,--file", run.prompt_file, "read the prompt from a file")
      ->excludes(prompt)
      ->type_name("PATH")
      ->group(kGroupPrompt);
  app.add_flag(
         "--raw", run.raw, "continue the prompt as it is instead of answering it as a message"
  )
      ->group(kGroupPrompt);
  add_reply(app, run.reply);
  auto* json = app.add_flag("--json", run.json, "one JSON object instead of text and summary");
  json->group(kGroupOutput);
  app.add_flag(
         "--margins", run.margins, "with --json: lead of the best logit over the second, by token"
  )
      ->needs(json)
      ->group(kGroupOutput);
}

void add_chat(CLI::App& app, ChatArguments& chat) {
  add_pair(app, chat.pair);
  add_reply(app, chat.reply);
  app.add_option(
         "--tools",
         chat.tools_file,
         "tools that the model may call: a JSON array in OpenAI's form; an entry may also say how "
         "it "
         "is answered (\"answer\", \"answer_file\" or \"answer_command\"), else you are asked"
  )
      ->type_name("FILE")
      ->group(kGroupPrompt);
  app.add_option("--history", chat.history_file, "keep the lines you type there, for the next talk")
      ->type_name("FILE")
      ->group(kGroupOutput);
  app.footer(
      "Type a message and press return; \\ at the end of a line, or Alt-Return, goes on with the "
      "next. /help lists the commands. Ctrl-C stops the reply, Ctrl-D ends."
  );
}

void add_inspect(CLI::App& app, InspectArguments& inspect) {
  app.add_option(
         "files",
         inspect.files,
         "checkpoints: GGUF, .safetensors or Hugging Face folders; "
         "a target and a drafter together are checked as a pair"
  )
      ->required()
      ->type_name("FILE...");
  app.add_flag("--tensors", inspect.all_tensors, "list every tensor");
  app.add_flag(
      "--check-tensors", inspect.check_tensors, "decode everything and refuse what is not finite"
  );
  app.add_flag("--json", inspect.json, "one JSON object");
}

void add_verify(CLI::App& app, VerifyArguments& verify) {
  add_pair(app, verify.pair);
  add_prompts(
      app,
      verify.prompts_file,
      verify.limit,
      verify.max_tokens,
      "prompts, one JSON object a line, with \"turns\": [text, ...]"
  );
  app.add_option("--temp", verify.temperatures, "temperatures to prove (default 0 and 1)")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("X...");
  app.add_option("-s,--seed", verify.seed, "seed of the sampled runs (default 1)")->type_name("N");
  app.add_option(
         "--drafter", verify.drafters, "only these drafters: none, oracle, liar, half, dflash"
  )
      ->type_name("NAME...");
  add_verify_rule(app, verify.rule);
  app.add_flag("--json", verify.json, "one JSON object");
  app.footer("Exit code 0: identical. 1: a difference was found; the first one is printed.");
}

void add_synth(CLI::App& app, SynthArguments& synth) {
  app.add_option("--preset", synth.preset, "shape: bolt-e4b or tiny")
      ->required()
      ->transform(CLI::CheckedTransformer(std::map<std::string, SynthPreset>{
          {"bolt-e4b", SynthPreset::kBoltE4b}, {"tiny", SynthPreset::kTiny}}))
      ->option_text("bolt-e4b|tiny");
  app.add_option("--kind", synth.kind, "target (default) or drafter")
      ->transform(CLI::CheckedTransformer(std::map<std::string, SynthKind>{
          {"target", SynthKind::kTarget}, {"drafter", SynthKind::kDrafter}}))
      ->option_text("target|drafter");
  app.add_option(
         "--type",
         synth.recipe,
         "weight types: bf16 (default), q8_0, q4_k_m (targets), q4_1 (drafters, fc in BF16)"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, SynthRecipe>{
          {"bf16", SynthRecipe::kBF16},
          {"q8_0", SynthRecipe::kQ8_0},
          {"q4_k_m", SynthRecipe::kQ4KM},
          {"q4_1", SynthRecipe::kQ4_1}}))
      ->option_text("bf16|q8_0|q4_k_m|q4_1");
  app.add_option(
         "--format",
         synth.format,
         "gguf (default) or safetensors (a Hugging Face folder, bf16 only)"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, SynthFormat>{
          {"gguf", SynthFormat::kGguf}, {"safetensors", SynthFormat::kSafetensors}}))
      ->option_text("gguf|safetensors");
  app.add_option("-o,--output", synth.output, "file, or folder for safetensors")
      ->required()
      ->type_name("PATH");
  app.add_option("-s,--seed", synth.seed, "seed of the weights (default 1)")->type_name("N");
  app.add_flag("-q,--quiet", synth.quiet, "no progress");
}

void add_draft_head(CLI::App& app, DraftHeadArguments& head) {
  add_pair(app, head.pair);
  app.get_option("--draft-model")->required();
  app.add_option(
         "--tokens",
         head.tokens,
         "most frequent tokens to keep, counted in --text and --prompts; 0 (default): all"
  )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 30))
      ->type_name("N")
      ->group(kGroupDraftHead);
  app.add_option_function<std::string>(
         "--type",
         [&head](const std::string& name) {
           head.dtype = dtype_from_name(name);
           if (!head.dtype) {
             throw CLI::ValidationError("--type", "knows no weight type '" + name + "'");
           }
         },
         "weight type: q4_k, q4_0, q8_0 ...; default: that of the pair's head"
  )
      ->type_name("NAME")
      ->group(kGroupDraftHead);
  app.add_option("--text", head.text_files, "text to count tokens in; repeatable")
      ->type_name("FILE...")
      ->group(kGroupDraftHead);
  CLI::Option* prompts =
      app.add_option(
             "--prompts",
             head.prompts_file,
             "prompts, one JSON object a line, whose answers by the target are counted"
      )
          ->type_name("FILE.jsonl")
          ->group(kGroupDraftHead);
  app.add_option("--limit", head.limit, "use the first N prompts")
      ->needs(prompts)
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(kGroupDraftHead);
  app.add_option("-n,--predict", head.max_tokens, "most tokens of an answer (default 256)")
      ->needs(prompts)
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N")
      ->group(kGroupDraftHead);
  app.add_option(
         "-o,--output", head.output, "default: DRAFTER.head.gguf, where every command finds it"
  )
      ->type_name("PATH")
      ->group(kGroupDraftHead);
  app.callback([&head] {
    const bool counted = !head.text_files.empty() || !head.prompts_file.empty();
    if (head.tokens > 0 && !counted) {
      throw CLI::ValidationError(
          "--tokens", "needs something to count in: add --text or --prompts"
      );
    }
    if (head.tokens == 0 && counted) {
      throw CLI::ValidationError(
          "--text and --prompts", "choose tokens; say how many with --tokens"
      );
    }
  });
}

void add_bench_policy(CLI::App& app, PolicyBenchArguments& policy) {
  add_pair(app, policy.pair);
  app.get_option("--draft-model")->required();
  add_prompts(
      app,
      policy.prompts_file,
      policy.limit,
      policy.max_tokens,
      "prompts, one JSON object a line, with \"turns\": [text, ...]; default: three of octet's"
  );
  app.add_option("--temp", policy.temperature, "temperature (default 0)")
      ->check(CLI::Range(0.0, 100.0))
      ->type_name("X");
  app.add_option("-s,--seed", policy.seed, "seed of sampled runs (default 1)")->type_name("N");
  app.add_option(
         "--rounds", policy.rounds, "rounds of every reply, of which the median counts (default 3)"
  )
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  app.add_option("--lengths", policy.lengths, "fixed numbers of drafts (default 1 3 5 7)")
      ->check(CLI::Range(1, kMaxDrafts))
      ->type_name("N...");
  app.add_option(
         "--acceptance",
         policy.acceptances,
         "replace the drafter's guesses by ones that are right with this probability; 0: a liar; "
         "the drafter is paid for as always"
  )
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X...");
  app.add_flag("--ignore-eos", policy.ignore_end, "go on after end tokens");
  app.add_flag("--json", policy.json, "one JSON object");
}

void add_bench_cycle(CLI::App& cycle, BenchArguments& bench) {
  add_pair(cycle, bench.pair);
  CLI::Option* model = cycle.get_option("--model")->required(false);
  cycle.remove_option(cycle.get_option("--ctx-size"));  // the contexts are listed
  cycle
      .add_option(
          "--contexts",
          bench.contexts,
          "positions before the rows (default 0 4096 16384 32768 65536)"
      )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
      ->type_name("N...");
  cycle.add_option("--prompts", bench.prompts, "prompt lengths to process (default 512 4096)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->type_name("N...");
  cycle.add_option("--rounds", bench.rounds, "rounds, everything once in each (default 5)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  cycle
      .add_option(
          "--prompt-rounds",
          bench.prompt_rounds,
          "rounds that process prompts too (default 1; 0: no prompts)"
      )
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  CLI::Option* command =
      cycle
          .add_option(
              "--compare-command", bench.compare_command, "another program to time in every round"
          )
          ->type_name("COMMAND");
  cycle
      .add_option(
          "--compare-pattern",
          bench.compare_pattern,
          "regular expression whose first group is that program's milliseconds; default: its whole "
          "run"
      )
      ->needs(command)
      ->type_name("REGEX");
  CLI::Option* files =
      cycle
          .add_option(
              "--compare", bench.compare_files, "compare two results of --json instead of measuring"
          )
          ->expected(2)
          ->type_name("OLD NEW");
  cycle.add_flag("--json", bench.json, "one JSON object");
  cycle.callback([&cycle, model, files] {
    if (model->empty() && files->empty()) {
      throw CLI::RequiredError("--model");
    }
    for (const CLI::Option* option : cycle.get_options()) {
      if (!files->empty() && option != files && !option->empty()) {
        throw CLI::ValidationError(
            "--compare", "reads two results and measures nothing; leave out " + option->get_name()
        );
      }
    }
  });
}

void add_bench(CLI::App& app, BenchArguments& bench) {
  CLI::App* policy = app.add_subcommand(
      "policy", "adaptive drafting against plain decoding and every fixed length, in turn"
  );
  auto policy_arguments = std::make_shared<PolicyBenchArguments>();
  add_bench_policy(*policy, *policy_arguments);
  policy->callback([&bench, policy_arguments] { bench.policy = *policy_arguments; });
  add_bench_cycle(
      *app.add_subcommand("cycle", "cost of every part of a verify cycle, each beside its floor"),
      bench
  );
  CLI::App* ops = app.add_subcommand(
      "ops", "single kernels, by google benchmark: runs octet-bench-ops with the flags that follow"
  );
  ops->prefix_command();
  ops->set_help_flag();  // --help is octet-bench-ops's too
  ops->callback([&bench, ops] { bench.ops = ops->remaining(); });
  app.require_subcommand(1);
}

/// "The following argument was not expected: --tmp" and the like, as one sentence with a remedy.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) {
    text.pop_back();
  }
  const auto commands = app.get_subcommands();
  const std::string name = commands.empty() ? "octet" : "octet " + commands.front()->get_name();
  return fmt::format("{}; `{} --help` lists what there is", text, name);
}

/// CLI11 would only say that a command is missing.
void refuse_unknown_command(const CLI::App& app, const std::vector<std::string>& list) {
  const auto is_meant = [&](const CLI::App* command) {
    return command->get_name() == list.front();
  };
  if (!list.empty() && list.front().rfind('-', 0) != 0 && app.get_subcommands(is_meant).empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("there is no command '{}'; `octet --help` lists what there is", list.front())
    );
  }
}

}  // namespace

Command parse_arguments(std::span<const std::string> arguments) {
  CLI::App app{
      "octet: an engine for Gemma 4 targets with DFlash drafters. Drafting never changes the "
      "text."};
  app.name("octet");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(kVersion));
  app.get_formatter()->column_width(34);

  std::map<const CLI::App*, std::function<Command()>> commands;
  // A command's options live until its CLI::App has been parsed and read.
  const auto add = [&](const char* name, const char* text, auto options, auto fill) {
    auto values = std::make_shared<decltype(options)>(std::move(options));
    CLI::App* command = app.add_subcommand(name, text);
    fill(*command, *values);
    commands[command] = [values] { return Command(*values); };
  };
  add("run", "answer one prompt", RunArguments{}, add_run);
  add("chat", "converse", ChatArguments{}, add_chat);
  add("inspect",
      "show what is in checkpoints and whether they make a pair",
      InspectArguments{},
      add_inspect);
  add("verify",
      "prove on prompts that drafting does not change the text",
      VerifyArguments{},
      add_verify);
  add("convert", "turn GGUF into Hugging Face safetensors and back", ConvertArguments{}, add_convert
  );
  add("quantize", "write weights in fewer bits", QuantizeArguments{}, add_quantize);
  add("imatrix", "collect how much the columns of weights matter", ImatrixArguments{}, add_imatrix);
  add("compare", "judge what quantizing cost", CompareArguments{}, add_compare);
  add("synth", "write checkpoints with random weights", SynthArguments{}, add_synth);
  add("serve", "answer over HTTP, as an OpenAI-compatible server", ServeArguments{}, add_serve);
  add("draft-head",
      "store a smaller head to read drafts from: faster drafts, the same text",
      DraftHeadArguments{},
      add_draft_head);
  add("bench", "measure what steps cost on this machine", BenchArguments{}, add_bench);

  add("generate-data",
      "have the target answer prompts, as training data for a drafter",
      GenerateDataArguments{},
      add_generate_data);
  add("eval", "measure acceptance and speed on suites of prompts", EvalArguments{}, add_eval);

  std::vector<std::string> list = with_long_flags(arguments);
  add_config_file(*app.get_subcommand("serve"), list);
  refuse_unknown_command(app, list);
  std::reverse(list.begin(), list.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(list));
  } catch (const CLI::CallForVersion&) {
    return Notice{std::string(kVersion) + "\n"};
  } catch (const CLI::CallForAllHelp&) {
    return Notice{app.help("", CLI::AppFormatMode::All)};
  } catch (const CLI::CallForHelp&) {
    return Notice{app.help()};
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorKind::kInvalidArgument, complaint(app, error));
  }
  return commands.at(app.get_subcommands().front())();
}

}  // namespace octet::cli
