#include "octet/cli/nvfp4_calibration.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/embedding_scale.h"
#include "octet/cli/rollouts.h"
#include "octet/cli/terminal.h"
#include "octet/cli/text_files.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/models/run_text.h"
#include "octet/quantize/draft_text.h"
#include "octet/quantize/text_chunks.h"
#include "octet/text/load_tokenizer.h"

namespace octet::cli {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw Error(ErrorKind::kInvalidArgument, std::move(message));
}

std::vector<std::vector<TokenId>> calibration_chunks(
    const CalibrationText& text, TargetModel& target, const Tokenizer& tokenizer, Progress& progress
) {
  std::vector<std::vector<TokenId>> texts;
  if (text.rollouts > 0) {
    texts = write_rollouts(text, target, tokenizer, progress);
  }
  for (std::vector<TokenId>& tokens : read_texts(text.files, tokenizer)) {
    texts.push_back(std::move(tokens));
  }
  return cut_chunks(texts, tokenizer.bos(), {text.chunk_tokens, text.max_chunks}, target.shape());
}

/// The request without what runs the model.
CalibrationRequest request_of(
    const QuantizeArguments& arguments,
    const Checkpoint& source,
    CalibrationOps& ops,
    ThreadPool& pool,
    Progress& progress
) {
  CalibrationRequest request{source, ops, pool, arguments.gptq, arguments.w4a4, {}, {}};
  request.on_part = [&progress](std::string_view part, int64_t done, int64_t parts) {
    progress.show(fmt::format("Calibrating the {}, part {} of {}", part, done + 1, parts));
  };
  return request;
}

/// The source, saying of its NVFP4 weights what is to be true of them: those that are rounded
/// already multiply as they will later, with four-bit activations once they have input scales.
std::shared_ptr<const Checkpoint> as_it_will_multiply(const Checkpoint& source, bool w4a4) {
  auto result = std::make_shared<Checkpoint>(source);
  result->metadata.set("general.quant_algo", std::string(w4a4 ? "MIXED_PRECISION" : "W4A16_NVFP4"));
  return result;
}

CalibratedWeights calibrate_target(
    const QuantizeArguments& arguments,
    const std::shared_ptr<const Checkpoint>& source,
    CheckpointPlan& plan,
    ThreadPool& pool
) {
  CalibrationOps ops(make_cpu_ops({.threads = arguments.threads, .isa = arguments.isa}));
  Progress progress(!arguments.quiet);
  const auto tokenizer = load_tokenizer(*source);
  const auto target = load_target(source, ops, {});
  const auto chunks = calibration_chunks(arguments.text, *target, *tokenizer, progress);
  const bool own_head = source->find("output.weight") != nullptr;
  CalibrationRequest request = request_of(arguments, *source, ops, pool, progress);
  request.run = [&](int64_t last_layer) {
    const auto layer = static_cast<int>(std::min(last_layer, target->shape().layers - 1));
    const TextRun run{{&layer, 1}, own_head && last_layer == kAllLayers};
    for (const std::vector<TokenId>& chunk : chunks) {
      run_text(*target, chunk, run, [](const ForwardRows&) {});
    }
  };
  return calibrate_nvfp4(plan, request);
}

CalibratedWeights calibrate_drafter(
    const QuantizeArguments& arguments,
    const std::shared_ptr<const Checkpoint>& source,
    CheckpointPlan& plan,
    ThreadPool& pool
) {
  const auto target_ops = make_cpu_ops({.threads = arguments.threads, .isa = arguments.isa});
  CalibrationOps ops(make_cpu_ops({.threads = arguments.threads, .isa = arguments.isa}));
  Progress progress(!arguments.quiet);
  const auto checkpoint = open_checkpoint(arguments.target);
  const auto tokenizer = load_tokenizer(*checkpoint);
  const auto target = load_target(checkpoint, *target_ops, {});
  const auto chunks = calibration_chunks(arguments.text, *target, *tokenizer, progress);
  DrafterOptions options;
  options.embedding_scale =
      choose_embedding_scale({std::nullopt, source, *tokenizer, *target_ops, *target, *checkpoint})
          .scale;
  const auto drafter = load_drafter(source, ops, *target, options);
  const DraftText text(*target, drafter->shape().taps, chunks, [&](int64_t done, int64_t all) {
    progress.show(fmt::format("Running the target, chunk {} of {}", done, all));
  });
  CalibrationRequest request = request_of(arguments, *source, ops, pool, progress);
  request.run = [&](int64_t /*last_layer*/) { text.play(*drafter); };
  return calibrate_nvfp4(plan, request);
}

void warn_about(const std::vector<std::string>& names, std::string_view what) {
  if (!names.empty()) {
    fmt::print(
        stderr,
        "octet: {} weights {}: {}{}\n",
        names.size(),
        what,
        names.front(),
        names.size() > 1 ? ", ..." : ""
    );
  }
}

}  // namespace

bool wants_calibration(const QuantizeArguments& arguments, const Checkpoint& source) {
  const bool wanted = arguments.gptq || arguments.w4a4;
  if (!wanted && !arguments.text.empty()) {
    refuse("there is text to calibrate on and nothing to calibrate; add --gptq or --activation w4a4"
    );
  }
  if (wanted && arguments.text.empty()) {
    refuse(fmt::format(
        "{} needs text to calibrate on; give it with --calibrate, or --rollouts N",
        arguments.gptq ? "--gptq" : "--activation w4a4"
    ));
  }
  const bool drafter = source.architecture() == "dflash";
  if (wanted && drafter && arguments.target.empty()) {
    refuse("a drafter is calibrated on what its target has at every token; name it with --target");
  }
  if (!arguments.target.empty() && !(wanted && drafter)) {
    refuse("--target is for drafters that are calibrated; leave it out");
  }
  return wanted;
}

CalibratedWeights calibrate_plan(
    const QuantizeArguments& arguments,
    const std::shared_ptr<const Checkpoint>& source,
    CheckpointPlan& plan,
    ThreadPool& pool
) {
  refuse_idle_calibration(plan, arguments.gptq);
  const auto running = as_it_will_multiply(*source, arguments.w4a4);
  CalibratedWeights weights = source->architecture() == "dflash"
                                  ? calibrate_drafter(arguments, running, plan, pool)
                                  : calibrate_target(arguments, running, plan, pool);
  if (!arguments.quiet) {
    warn_about(weights.unused, "multiply nothing and are rounded plainly");
    warn_about(weights.indefinite, "have Hessians that cannot be inverted and are rounded plainly");
  }
  return weights;
}

}  // namespace octet::cli
