#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/export_report.h"
#include "octet/cli/nvfp4_calibration.h"
#include "octet/formats/checkpoint_files.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/quantize/gguf_export.h"
#include "octet/quantize/hf_export.h"
#include "octet/quantize/importance.h"
#include "octet/quantize/output_place.h"
#include "octet/quantize/portable_metadata.h"
#include "octet/quantize/recipe.h"

namespace octet::cli {
namespace {

constexpr size_t kShownNames = 5;

bool is_gguf_name(const std::string& path) {
  return std::filesystem::path(path).extension() == ".gguf";
}

Recipe required_recipe(const std::string& name) {
  std::optional<Recipe> recipe = find_recipe(name);
  if (!recipe) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("--type '{}' is unknown; there are {}", name, fmt::join(recipe_names(), " "))
    );
  }
  return *std::move(recipe);
}

std::vector<TypeRule> overrides(const QuantizeArguments& arguments) {
  std::vector<TypeRule> rules;
  if (!arguments.table_type.empty()) {  // before the rules, some of which may match every name
    rules.push_back(parse_type_rule("per_layer_token_embd=" + arguments.table_type));
  }
  for (const std::string& text : arguments.tensor_rules) {
    rules.push_back(parse_type_rule(text));
  }
  return rules;
}

/// Recipes for one kind of model say nothing sensible about the other.
void require_kind(const Recipe& recipe, const Checkpoint& source) {
  const bool drafter = source.architecture() == "dflash";
  if ((recipe.name == "Q4_K_M" && drafter) || (recipe.name == "drafter-q4_1" && !drafter)) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: {} is a recipe for {}; use {} or a plain type",
            source.path,
            recipe.name,
            drafter ? "targets" : "drafters",
            drafter ? "drafter-q4_1" : "Q4_K_M"
        )
    );
  }
}

/// What a GGUF writer of other engines says about the importance that it used.
void describe_importance(
    Metadata& metadata, const std::string& path, const ImportanceMatrix& matrix
) {
  metadata.set("quantize.imatrix.file", std::filesystem::path(path).filename().string());
  if (!matrix.datasets.empty()) {
    metadata.set("quantize.imatrix.dataset", matrix.datasets.front());
  }
  metadata.set("quantize.imatrix.entries_count", static_cast<uint32_t>(matrix.entries.size()));
  metadata.set("quantize.imatrix.chunks_count", static_cast<uint32_t>(matrix.chunk_count));
}

void warn_about_missing(const std::vector<std::string>& names, bool quiet) {
  if (names.empty() || quiet) {
    return;
  }
  const size_t shown = std::min(names.size(), kShownNames);
  fmt::print(
      stderr,
      "octet: {} tensors have no importance and are rounded plainly: {}{}\n",
      names.size(),
      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      names.size() > shown ? ", ..." : ""
  );
}

/// GGUF for a file name that ends so, else a folder as Model Optimizer writes it.
bool exports_modelopt(const QuantizeArguments& arguments, const Recipe& recipe) {
  if (is_gguf_name(arguments.output)) {
    if (!arguments.excluded.empty()) {
      throw Error(
          ErrorKind::kInvalidArgument,
          "--exclude belongs to folders of NVFP4; for GGUF give --tensor 'PATTERN=BF16'"
      );
    }
    if (arguments.gptq || arguments.w4a4 || !arguments.text.empty()) {
      throw Error(
          ErrorKind::kInvalidArgument,
          "--gptq, --activation w4a4 and text to calibrate on belong to folders of NVFP4; `octet "
          "convert` makes GGUF from such a folder"
      );
    }
    return false;
  }
  if (recipe.base != DType::kNVFP4) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{}: {} goes into a GGUF file; end the output's name in .gguf (only NVFP4 goes into a "
            "folder)",
            arguments.output,
            recipe.name
        )
    );
  }
  if (!arguments.tensor_rules.empty() || !arguments.importance.empty() ||
      !arguments.table_type.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "a folder of NVFP4 takes --exclude, not --tensor, --ple-type or --imatrix"
    );
  }
  return true;
}

/// All files and folders that are read besides the checkpoints.
std::vector<std::string> other_inputs(const QuantizeArguments& arguments) {
  std::vector<std::string> inputs = arguments.text.files;
  inputs.insert(inputs.end(), {arguments.importance, arguments.text.prompts_file});
  return inputs;
}

}  // namespace

int quantize(const QuantizeArguments& arguments) {
  const Recipe recipe = required_recipe(arguments.type);
  const bool modelopt = exports_modelopt(arguments, recipe);
  const std::vector<TypeRule> rules = overrides(arguments);
  const auto source = open_checkpoint(arguments.input, UnusedTensors::kKeep);
  const auto tokenizer_source =
      arguments.tokenizer.empty() ? nullptr : open_checkpoint(arguments.tokenizer);
  require_kind(recipe, *source);
  const bool calibrate = wants_calibration(arguments, *source);
  const auto target = arguments.target.empty() ? nullptr : open_checkpoint(arguments.target);
  CheckpointPlan plan =
      modelopt ? plan_hf_nvfp4(*source, arguments.excluded) : plan_recipe(*source, recipe, rules);
  prepare_output(
      all_inputs({source, tokenizer_source, target}, other_inputs(arguments)),
      arguments.output,
      planned_bytes(plan),
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse,
      modelopt ? OutputKind::kFolder : OutputKind::kFile
  );
  PortableMetadata portable = gather_metadata(
      *source,
      tokenizer_source.get(),
      modelopt ? TokenizerNeed::kOptional : TokenizerNeed::kRequired
  );
  portable.metadata.set("general.file_type", recipe.file_type);
  portable.metadata.set("general.quantization_version", uint32_t{2});
  describe_new_types(portable.metadata, plan);
  AttachedImportance attached;
  if (!arguments.importance.empty()) {
    const ImportanceMatrix matrix = read_importance(arguments.importance);
    attached = attach_importance(plan, matrix);
    warn_about_missing(attached.without, arguments.quiet);
    describe_importance(portable.metadata, arguments.importance, matrix);
  }
  ThreadPool pool(arguments.threads > 0 ? arguments.threads : ThreadPool::usable_cpus());
  const CheckpointPlan as_planned = plan;  // calibrated, it points to other weights
  CalibratedWeights calibrated;
  if (modelopt && calibrate) {
    calibrated = calibrate_plan(arguments, source, plan, pool);
  }
  ExportReport report(
      arguments.quiet ? ExportReport::Speech::kQuiet : ExportReport::Speech::kSpeak
  );
  const ExportRequest request{*source, portable.metadata, plan, arguments.output};
  if (modelopt) {
    write_hf_checkpoint(request, kDefaultShardBytes, pool, report.on_progress());
  } else {
    write_gguf_checkpoint(request, pool, report.on_progress());
  }
  report.print_summary(as_planned, arguments.output);
  return 0;
}

}  // namespace octet::cli
