#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/train/options.h"

namespace octet::train {
namespace {

constexpr const char* kGroupData = "Data";
constexpr const char* kGroupModel = "Model";
constexpr const char* kGroupLearning = "Learning";
constexpr const char* kGroupRun = "Run";
constexpr const char* kGroupTogether = "Several processes";

void add_data(CLI::App& app, LoopOptions& loop) {
  app.add_option("--data", loop.data_files, "texts to learn, one JSON object a line; repeatable")
      ->required()
      ->expected(1)
      ->take_all()
      ->type_name("FILE.jsonl")
      ->group(kGroupData);
  app.add_option("--validation", loop.validation_files, "texts to judge by; repeatable")
      ->expected(1)
      ->take_all()
      ->type_name("FILE.jsonl")
      ->group(kGroupData);
  app.add_flag_callback(
         "--skip-bad-lines",
         [&loop] { loop.bad_lines = BadLines::kSkip; },
         "report lines and records that are no texts and go on; without it they end the run"
  )
      ->group(kGroupData);
  app.add_option("--length", loop.length, "tokens of a text, at most")
      ->check(CLI::Range(2, 1 << 20))
      ->type_name("N")
      ->group(kGroupData);
}

void add_features(CLI::App& app, DrafterArguments& drafter) {
  const auto files = [&app](const char* flag, auto& value, const char* instead, const char* text) {
    app.add_option(flag, value, text)
        ->expected(1)
        ->take_all()
        ->excludes(instead)
        ->type_name("FILE")
        ->group(kGroupData);
  };
  app.get_option("--data")->required(false);
  files(
      "--features",
      drafter.feature_files,
      "--data",
      "instead: texts as `octet generate-data --features` recorded them, with --teacher-states "
      "unless tokens teach; no layer of the target runs; repeatable"
  );
  files(
      "--validation-features",
      drafter.validation_feature_files,
      "--validation",
      "instead: recorded texts to judge by; repeatable"
  );
}

void add_learning(CLI::App& app, LoopOptions& loop) {
  TrainerSettings& trainer = loop.trainer;
  const auto number = [&app](const char* flag, auto& value, const char* text) {
    return app.add_option(flag, value, text)->capture_default_str()->group(kGroupLearning);
  };
  number("--steps", trainer.steps, "steps of the run")->check(CLI::PositiveNumber)->type_name("N");
  number("--epochs", loop.epochs, "instead of --steps: times that every text is read")
      ->check(CLI::PositiveNumber)
      ->type_name("X")
      ->excludes("--steps");
  number("--batch", trainer.batch, "texts of a step, of all processes together")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  number("--rate", trainer.optimizer.rate, "of AdamW")->check(CLI::NonNegativeNumber);
  number("--matrix-rate", trainer.optimizer.matrix_rate, "of Muon")->check(CLI::NonNegativeNumber);
  number("--decay", trainer.optimizer.weight_decay, "of weights, times the rate")
      ->check(CLI::NonNegativeNumber);
  number("--warm-up", trainer.schedule.warm_up, "share of the steps in which rates rise")
      ->check(CLI::Range(0.0, 1.0));
  number("--flat", trainer.schedule.flat, "share of the steps after which rates fall to zero")
      ->check(CLI::Range(0.0, 0.999));
  number("--clip", trainer.clip, "largest norm of the gradients; 0: any")
      ->check(CLI::NonNegativeNumber);
  number("--seed", loop.seed, "of initial weights, order and anchors");
  app.add_option(
         "--optimizer",
         trainer.optimizer.kind,
         "muon (default): Muon for matrices, AdamW for the rest; adamw: for all"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, OptimizerKind>{
          {"muon", OptimizerKind::kMuon}, {"adamw", OptimizerKind::kAdamW}}))
      ->option_text("muon|adamw")
      ->group(kGroupLearning);
  app.add_option(
         "--precision",
         loop.precision,
         "bf16 (default): products take operands rounded to bfloat16; f32"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, Precision>{
          {"bf16", Precision::kBF16}, {"f32", Precision::kFull}}))
      ->option_text("bf16|f32")
      ->group(kGroupLearning);
}

void add_run(CLI::App& app, LoopOptions& loop) {
  const auto option = [&app](const char* flag, auto& value, const char* text) {
    return app.add_option(flag, value, text)->group(kGroupRun);
  };
  option("-o,--output", loop.output, "folder for the trained model")
      ->required()
      ->type_name("FOLDER");
  app.add_flag("--force", loop.force, "replace the output, and the state of another run")
      ->group(kGroupRun);
  option("--state", loop.state_file, "where the run's state is saved, to be resumed from")
      ->type_name("FILE");
  app.add_flag("--resume", loop.resume, "go on from --state")->needs("--state")->group(kGroupRun);
  option("--save-every", loop.save_every, "steps between saved states")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->needs("--state");
  option("--validate-every", loop.validate_every, "steps between validations; default: an epoch")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  option("--patience", loop.patience, "validations without gain that end the run; 0: none do")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  option("--html", loop.html_file, "write a self-contained page with the curves")
      ->type_name("FILE");
  option("-t,--threads", loop.threads, "of this process; default: all usable CPUs")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_flag("-q,--quiet", loop.quiet, "no progress")->group(kGroupRun);
}

void add_together(CLI::App& app, LoopOptions& loop) {
  app.add_option("--processes", loop.place.processes, "that train one model, each with its --rank")
      ->check(CLI::Range(1, 1024))
      ->type_name("N")
      ->group(kGroupTogether);
  app.add_option("--rank", loop.place.rank, "of this process, from 0")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->needs("--processes")
      ->group(kGroupTogether);
  app.add_option_function<std::string>(
         "--meet",
         [&loop](const std::string& text) {
           const size_t colon = text.rfind(':');
           if (colon == std::string::npos ||
               !CLI::detail::lexical_cast(text.substr(colon + 1), loop.place.port) ||
               loop.place.port < 1 || loop.place.port > 65535) {
             throw CLI::ValidationError("--meet", "expects HOST:PORT");
           }
           loop.place.host = text.substr(0, colon);
         },
         "where the processes meet: an address and a free port of rank 0"
  )
      ->type_name("HOST:PORT")
      ->needs("--processes")
      ->group(kGroupTogether);
}

void add_drafter_shape(CLI::App& app, DrafterArguments& drafter) {
  DrafterShape& shape = drafter.shape;
  const auto size = [&app](const char* flag, int64_t& value, const char* text, int least = 1) {
    return app.add_option(flag, value, text)
        ->capture_default_str()
        ->check(CLI::Range(least, 1 << 20))
        ->type_name("N")
        ->excludes("--init")
        ->group(kGroupModel);
  };
  app.add_option("--init", drafter.initial, "begin with this drafter instead of random weights")
      ->type_name("DRAFTER")
      ->group(kGroupModel);
  size("--layers", shape.layers, "of a new drafter");
  size("--heads", shape.heads, "query heads");
  size("--kv-heads", shape.kv_heads, "key and value heads");
  size("--head-dim", shape.head_dim, "width of a head");
  size("--feed-forward", shape.feed_forward, "default: twice the target's hidden size");
  size("--window", shape.window, "context positions that a row sees; 0: all of them", 0);
  size("--block", shape.block, "rows of a block: the anchor and the masks")
      ->check(CLI::Range(2, 64));
  app.add_option("--taps", shape.taps, "zero-based target layers to read, e.g. 1,2,3,4")
      ->delimiter(',')
      ->excludes("--init")
      ->type_name("N,N,...")
      ->group(kGroupModel);
  app.add_option("--rope-base", shape.rope_base, "of rotary positions")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->excludes("--init")
      ->group(kGroupModel);
  app.add_option(
         "--embedding-scale",
         shape.embedding_scale,
         "of the block's embeddings; default: square root of the hidden size, or what the drafter "
         "of "
         "--init has"
  )
      ->check(CLI::PositiveNumber)
      ->group(kGroupModel);
  app.add_option("--init-scale", drafter.initial_scale, "of random weights: 1 / fan-in, or 0.02")
      ->transform(CLI::CheckedTransformer(std::map<std::string, InitialScale>{
          {"fan-in", InitialScale::kByFanIn}, {"0.02", InitialScale::kFixed}}))
      ->option_text("fan-in|0.02")
      ->excludes("--init")
      ->group(kGroupModel);
}

void add_drafter(CLI::App& app, DrafterArguments& drafter) {
  app.add_option("-m,--model", drafter.target, "the target that the drafter is for")
      ->required()
      ->type_name("TARGET")
      ->group(kGroupModel);
  add_drafter_shape(app, drafter);
  add_data(app, drafter.loop);
  add_features(app, drafter);
  add_learning(app, drafter.loop);
  app.add_option("--anchors", drafter.task.anchors, "blocks of a text and step, at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N")
      ->group(kGroupLearning);
  app.add_option(
         "--gamma", drafter.task.weight_decay, "row k of a block weighs exp(-(k - 1) / gamma)"
  )
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->group(kGroupLearning);
  app.add_option(
         "--learn",
         drafter.learn,
         "replies (default): of texts with turns, what the model says; all: all that is not given"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, Learn>{
          {"replies", Learn::kReplies}, {"all", Learn::kAll}}))
      ->option_text("replies|all")
      ->group(kGroupLearning);
  app.add_option(
         "--teacher",
         drafter.task.teacher,
         "distribution (default): the target's at every token; tokens: those of the text"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, Teacher>{
          {"distribution", Teacher::kDistribution}, {"tokens", Teacher::kTokens}}))
      ->option_text("distribution|tokens")
      ->group(kGroupLearning);
  app.add_option("--validation-tokens", drafter.validation_tokens, "of a validation's replies")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->group(kGroupRun);
  add_run(app, drafter.loop);
  add_together(app, drafter.loop);
}

void add_target(CLI::App& app, TargetArguments& target) {
  target.loop.trainer.batch = 8;
  target.loop.trainer.optimizer.rate = 4e-3;
  app.add_option(
         "--like",
         target.like,
         "a checkpoint whose shape, tokenizer and chat template the new one has"
  )
      ->required()
      ->type_name("TARGET")
      ->group(kGroupModel);
  app.add_option("--init", target.initial, "begin with these weights instead of random ones")
      ->type_name("TARGET")
      ->group(kGroupModel);
  add_data(app, target.loop);
  add_learning(app, target.loop);
  add_run(app, target.loop);
  add_together(app, target.loop);
}

void add_corpus(CLI::App& app, CorpusArguments& corpus) {
  app.add_option("-o,--output", corpus.output, "a line of JSON for each dialogue")
      ->required()
      ->type_name("FILE.jsonl");
  app.add_option("--dialogues", corpus.dialogues, "how many")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N");
  app.add_option("--thinking", corpus.thinking_share, "share of the dialogues that think")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("X");
  app.add_option("--seed", corpus.seed, "other dialogues for each")->capture_default_str();
  app.add_option(
         "--withhold",
         corpus.withheld_files,
         "write none of its dialogues, and no other with one of their sums: what is judged with "
         "them "
         "was then not learnt by heart; repeatable"
  )
      ->expected(1)
      ->take_all()
      ->type_name("FILE");
  app.add_flag("--force", corpus.force, "replace the output");
}

void add_samples(CLI::App& app, SamplesArguments& samples) {
  const auto number = [&app](const char* flag, auto& value, const char* text) {
    return app.add_option(flag, value, text)->capture_default_str();
  };
  app.add_option("-m,--model", samples.target, "the target that writes")
      ->required()
      ->type_name("TARGET");
  app.add_option("--data", samples.data_files, "texts whose beginnings it continues; repeatable")
      ->required()
      ->expected(1)
      ->take_all()
      ->type_name("FILE.jsonl");
  app.add_option("-o,--output", samples.output, "a line of tokens for each text")
      ->required()
      ->type_name("FILE.jsonl");
  number("--count", samples.count, "texts to write")->check(CLI::Range(1, 100'000'000));
  number("--length", samples.length, "tokens of a text")->check(CLI::Range(2, 1 << 20));
  number("--prompt-tokens", samples.prompt_tokens, "of them given; 0: those before the first reply")
      ->check(CLI::NonNegativeNumber);
  number("--temperature", samples.temperature, "of the draw")->check(CLI::Range(0.0, 100.0));
  number("--seed", samples.seed, "other texts for each");
  app.add_option("-t,--threads", samples.threads, "default: all usable CPUs")
      ->check(CLI::PositiveNumber);
  app.add_flag("--force", samples.force, "replace the output");
}

/// CLI11 knows no flag that needs one of two others.
void check_validation(const CLI::App& app, bool validates, const char* sources) {
  for (const char* flag : {"--validate-every", "--patience", "--validation-tokens"}) {
    const CLI::Option* option = app.get_option_no_throw(flag);
    if (option != nullptr && option->count() > 0 && !validates) {
      throw Error(ErrorKind::kInvalidArgument, fmt::format("{} requires {}", flag, sources));
    }
  }
}

void check_drafter(const CLI::App& app, const DrafterArguments& drafter) {
  if (drafter.loop.data_files.empty() && drafter.feature_files.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "there is nothing to learn from; give texts (--data) or recorded ones (--features)"
    );
  }
  check_validation(
      app,
      !drafter.loop.validation_files.empty() || !drafter.validation_feature_files.empty(),
      "--validation or --validation-features"
  );
}

/// What CLI11 cannot say: flags that depend on values of others.
void check_loop(const CLI::App& app, const LoopOptions& loop) {
  if (loop.trainer.optimizer.kind == OptimizerKind::kAdamW && app.count("--matrix-rate") > 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--matrix-rate is the rate of Muon, which --optimizer adamw does without; give --rate"
    );
  }
  const Schedule& schedule = loop.trainer.schedule;
  if (schedule.warm_up > schedule.flat) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--warm-up {:g} goes beyond --flat {:g}: rates would fall before they have risen; give "
            "a smaller --warm-up",
            schedule.warm_up,
            schedule.flat
        )
    );
  }
  const ProcessPlace& place = loop.place;
  if (place.rank >= place.processes || (place.processes > 1 && place.port == 0)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "several processes need --processes N, a --rank below N each and the same --meet HOST:PORT"
    );
  }
}

}  // namespace

TrainCommand parse_train_arguments(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Trains drafters for octet; `octet-train COMMAND --help` lists the flags", "octet-train"
  );
  app.set_version_flag("--version", "octet-train " OCTET_VERSION);
  app.require_subcommand(1);
  DrafterArguments drafter;
  CLI::App* drafter_app = app.add_subcommand("drafter", "train a DFlash drafter for a target");
  add_drafter(*drafter_app, drafter);
  TargetArguments target;
  CLI::App* target_app = app.add_subcommand(
      "target", "train a small gemma4 target on every token of texts, given ones too"
  );
  add_target(*target_app, target);
  CorpusArguments corpus;
  CLI::App* corpus_app = app.add_subcommand("corpus", "write dialogues to train a small target on");
  add_corpus(*corpus_app, corpus);
  SamplesArguments samples;
  CLI::App* samples_app =
      app.add_subcommand("samples", "have a target continue texts, to train its drafter on");
  add_samples(*samples_app, samples);
  try {
    // CLI11 takes them from the back.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return HelpNotice{app.help()};
  } catch (const CLI::CallForVersion& version) {
    return HelpNotice{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("{}; see `octet-train COMMAND --help`", error.what())
    );
  }
  if (samples_app->parsed()) {
    return samples;
  }
  if (corpus_app->parsed()) {
    return corpus;
  }
  if (target_app->parsed()) {
    check_loop(*target_app, target.loop);
    check_validation(*target_app, !target.loop.validation_files.empty(), "--validation");
    return target;
  }
  check_loop(*drafter_app, drafter.loop);
  check_drafter(*drafter_app, drafter);
  return drafter;
}

}  // namespace octet::train
