#include "octet/cli/quantize_arguments.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "octet/cli/argument_groups.h"

namespace octet::cli {
namespace {

void add_export(CLI::App& app, const char* output_text, auto& arguments) {
  app.add_option(
         "input", arguments.input, "a GGUF file, a .safetensors file or a Hugging Face folder"
  )
      ->required()
      ->type_name("IN");
  app.add_option("output", arguments.output, output_text)->required()->type_name("OUT");
  app.add_option(
         "--tokenizer",
         arguments.tokenizer,
         "checkpoint whose tokenizer to take where IN has none: a drafter's target"
  )
      ->type_name("PATH");
  add_threads(app, arguments.threads, kGroupMachine);
  app.add_flag("--force", arguments.force, "replace OUT if it exists");
  app.add_flag("-q,--quiet", arguments.quiet, "no progress and no summary");
}

void add_threads_and_isa(CLI::App& app, int& threads, std::string& isa) {
  add_threads(app, threads, kGroupMachine);
  add_isa(app, isa, kGroupMachine);
}

std::vector<std::string> given(const CLI::App& app, std::initializer_list<const char*> flags) {
  std::vector<std::string> result;
  for (const char* flag : flags) {
    if (app.count(flag) > 0) {
      result.emplace_back(flag);
    }
  }
  return result;
}

void add_chunks(CLI::App& app, int64_t& tokens, int64_t& most) {
  app.add_option("--chunk", tokens, "tokens of a chunk, each starts from nothing (default 512)")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 20))
      ->type_name("N");
  app.add_option("--chunks", most, "run at most N chunks; 0: all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
}

/// Where text to run comes from; `file_flags` names the flag of files.
void add_calibration_text(CLI::App& app, CalibrationText& text, const std::string& file_flags) {
  constexpr const char* kRollouts = "--rollouts";
  app.add_option(
         file_flags, text.files, "text to run; control tokens in it count as such; repeatable"
  )
      ->expected(1)
      ->take_all()
      ->type_name("FILE");
  app.add_option(
         kRollouts, text.rollouts, "let the target write N replies at temperature 1 and run them"
  )
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("-n,--predict", text.rollout_tokens, "most tokens of a rollout (default 512)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N")
      ->needs(kRollouts);
  app.add_option(
         "--prompts",
         text.prompts_file,
         "prompts of rollouts, one JSON object a line, with \"turns\": [text, ...]"
  )
      ->type_name("FILE.jsonl")
      ->needs(kRollouts);
  app.add_option("-s,--seed", text.seed, "seed of the first rollout (default 1)")
      ->type_name("N")
      ->needs(kRollouts);
  add_chunks(app, text.chunk_tokens, text.max_chunks);
}

}  // namespace

void add_convert(CLI::App& app, ConvertArguments& convert) {
  add_export(app, "a name that ends in .gguf, or a new folder", convert);
  app.add_option("--format", convert.format, "gguf or safetensors; default: by the name of OUT")
      ->transform(CLI::CheckedTransformer(std::map<std::string, ConvertFormat>{
          {"gguf", ConvertFormat::kGguf}, {"safetensors", ConvertFormat::kSafetensors}}))
      ->option_text("gguf|safetensors");
  app.add_flag(
      "--dequantize",
      convert.dequantize,
      "write block types, which safetensors cannot hold, as BF16 (rounds)"
  );
  app.add_option(
         "--shard-size", convert.shard_bytes, "most bytes of a safetensors file, e.g. 2GB (5GB)"
  )
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50))
      ->type_name("SIZE");
  app.footer("Values never change, unless --dequantize says so. OUT appears complete or not at all."
  );
}

void add_quantize(CLI::App& app, QuantizeArguments& quantize) {
  add_export(
      app,
      "a name that ends in .gguf, or with --type NVFP4 a new folder as Model Optimizer writes it",
      quantize
  );
  app.add_option(
         "--type",
         quantize.type,
         "recipe: Q4_K_M (targets), drafter-q4_1 (Q4_1, fc in BF16); or one type for every matrix: "
         "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4 NVFP4 BF16 F16 F32"
  )
      ->required()
      ->type_name("TYPE");
  app.add_option(
         "--tensor",
         quantize.tensor_rules,
         "type of the matrices whose names match, before the recipe; the first match wins; "
         "repeatable: --tensor 'blk.*.ffn_down=Q6_K'"
  )
      ->type_name("PATTERN=TYPE")
      ->expected(1)
      ->take_all();
  app.add_option("--ple-type", quantize.table_type, "type of the per-layer embedding table")
      ->type_name("TYPE");
  app.add_option("--imatrix", quantize.importance, "importance of columns, see `octet imatrix`")
      ->type_name("FILE");
  app.add_option(
         "--exclude",
         quantize.excluded,
         "modules that stay as they are in a folder of NVFP4; repeatable: --exclude output"
  )
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  app.add_flag(
      "--gptq",
      quantize.gptq,
      "NVFP4 into a folder: round layer by layer with errors carried over, as far as the inputs of "
      "each layer on the calibration text allow; without it to nearest"
  );
  app.add_option_function<std::string>(
         "--activation",
         [&quantize](const std::string& mode) { quantize.w4a4 = mode == "w4a4"; },
         "what a folder of NVFP4 is made for: w4a16 (default), or w4a4, which calibrates input "
         "scales"
  )
      ->check(CLI::IsMember({"w4a16", "w4a4"}))
      ->option_text("w4a16|w4a4");
  add_calibration_text(app, quantize.text, "--calibrate");
  app.add_option("--target", quantize.target, "calibrating a drafter: the target it drafts for")
      ->type_name("PATH");
  app.add_option(
         "--isa", quantize.isa, "instruction set to calibrate with; default: the best the CPU has"
  )
      ->type_name("NAME");
  app.callback([&app] {
    const bool calibrates = app.count("--calibrate") > 0 || app.count("--rollouts") > 0;
    for (const std::string& flag : given(app, {"--chunk", "--chunks", "--isa"})) {
      if (!calibrates) {
        throw CLI::ValidationError(flag, "is about text to calibrate on; there is none");
      }
    }
  });
  app.footer("The bytes do not depend on --threads. OUT appears complete or not at all.");
}

void add_imatrix(CLI::App& app, ImatrixArguments& imatrix) {
  app.add_option("-m,--model", imatrix.model, "target: GGUF, .safetensors or a Hugging Face folder")
      ->required()
      ->type_name("PATH");
  app.add_option("-o,--output", imatrix.output, "importance matrix, a GGUF file")
      ->required()
      ->type_name("FILE");
  add_calibration_text(app, imatrix.text, "-f,--file");
  app.add_option(
         "--add-to",
         imatrix.add_to,
         "begin with this importance matrix; the older form counts chunks, taken to be as long as "
         "--chunk says"
  )
      ->type_name("FILE");
  add_threads_and_isa(app, imatrix.threads, imatrix.isa);
  app.add_flag("--force", imatrix.force, "replace the output if it exists");
  app.add_flag("-q,--quiet", imatrix.quiet, "no progress and no summary");
}

namespace {

void add_threshold(
    CLI::App& app, const std::string& flag, std::optional<double>& target, const std::string& text
) {
  app.add_option_function<double>(
         flag, [&target](double value) { target = value; }, text
  )
      ->check(CLI::NonNegativeNumber)
      ->type_name("X");
}

}  // namespace

void add_compare(CLI::App& app, CompareArguments& compare) {
  app.add_option("first", compare.first, "the reference: a target, or a drafter")
      ->required()
      ->type_name("A");
  app.add_option("second", compare.second, "another form of it")->required()->type_name("B");
  app.add_option("-f,--file", compare.files, "text for targets; repeatable")
      ->expected(1)
      ->take_all()
      ->type_name("FILE");
  app.add_option("--target", compare.target, "for drafters: the target that they draft for")
      ->type_name("PATH");
  add_prompts(
      app,
      compare.prompts_file,
      compare.limit,
      compare.max_tokens,
      "for drafters: prompts, one JSON object a line, with \"turns\": [text, ...]"
  );
  add_chunks(app, compare.chunk_tokens, compare.max_chunks);
  add_threads_and_isa(app, compare.threads, compare.isa);
  add_activation(app, compare.activation, "Options");
  add_threshold(app, "--max-kl", compare.max_kl, "fail when the mean KL divergence is larger");
  add_threshold(
      app,
      "--min-agreement",
      compare.min_agreement,
      "fail when the share of rows with the same best token is smaller, 0 to 1"
  );
  add_threshold(
      app,
      "--max-acceptance-loss",
      compare.max_acceptance_loss,
      "fail when drafters lose more percent of acceptance length"
  );
  app.add_option("--html", compare.html, "also write a report with plots")->type_name("FILE");
  app.add_flag("--json", compare.json, "one JSON object");
  app.callback([&app, &compare] {
    compare.target_flags =
        given(app, {"--file", "--chunk", "--chunks", "--max-kl", "--min-agreement"});
    compare.drafter_flags =
        given(app, {"--target", "--prompts", "--limit", "--predict", "--max-acceptance-loss"});
  });
  app.footer("Exit code 0: within the limits given. 1: a limit is exceeded.");
}

}  // namespace octet::cli
