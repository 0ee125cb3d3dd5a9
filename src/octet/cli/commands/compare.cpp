#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/comparison_report.h"
#include "octet/cli/pair.h"
#include "octet/cli/prompt_file.h"
#include "octet/cli/terminal.h"
#include "octet/cli/text_files.h"
#include "octet/engine/acceptance_replay.h"
#include "octet/formats/atomic_file.h"
#include "octet/formats/checkpoint_files.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/quantize/output_place.h"
#include "octet/speculation/drafters/drafter_list.h"
#include "octet/text/load_tokenizer.h"

namespace octet::cli {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw Error(ErrorKind::kInvalidArgument, std::move(message));
}

TargetComparison compare_two_targets(
    const CompareArguments& arguments,
    const std::shared_ptr<const Checkpoint>& first,
    const std::shared_ptr<const Checkpoint>& second
) {
  if (arguments.files.empty()) {
    refuse("two targets are compared on text; give it with -f");
  }
  if (!arguments.drafter_flags.empty()) {
    refuse(fmt::format(
        "{}: for drafters, and these are targets", fmt::join(arguments.drafter_flags, ", ")
    ));
  }
  const auto tokenizer = load_tokenizer(*first);
  const auto ops = make_cpu_ops(
      {.threads = arguments.threads, .isa = arguments.isa, .activation = arguments.activation}
  );
  const auto one = load_target(first, *ops, {});
  const auto other = load_target(second, *ops, {});
  Progress progress(true);
  return compare_targets(
      *one,
      *other,
      read_texts(arguments.files, *tokenizer),
      tokenizer->bos(),
      {arguments.chunk_tokens, arguments.max_chunks},
      [&](int64_t done, int64_t chunks) {
        progress.show(fmt::format("Chunk {} of {}", done, chunks));
      }
  );
}

std::vector<DrafterFigures> compare_two_drafters(const CompareArguments& arguments) {
  if (arguments.target.empty()) {
    refuse("two drafters are compared on what their target writes; give it with --target");
  }
  if (!arguments.target_flags.empty()) {
    refuse(fmt::format(
        "{}: for targets, and these are drafters", fmt::join(arguments.target_flags, ", ")
    ));
  }
  PairOptions options;
  options.model = arguments.target;
  options.draft_model = arguments.first;
  options.threads = arguments.threads;
  options.isa = arguments.isa;
  options.activation = arguments.activation;
  PairNeeds needs;
  needs.other_weights = true;
  Pair pair = load_pair(options, std::move(needs));
  options.draft_model = arguments.second;
  pair.draft_checkpoint = open_checkpoint(arguments.second);
  DrafterInputs inputs;
  inputs.draft_model = load_draft_model(options, pair);
  const auto other = new_drafter("dflash", *pair.target, std::move(inputs));

  const std::vector<Prompt> texts = arguments.prompts_file.empty()
                                        ? built_in_prompts()
                                        : read_prompts(arguments.prompts_file, arguments.limit);
  std::vector<std::vector<TokenId>> prompts;
  prompts.reserve(texts.size());
  for (const Prompt& text : texts) {
    prompts.push_back(encode_prompt(*pair.tokenizer, text));
  }
  ReplayVariant variants[2];
  variants[0].name = arguments.first;
  variants[0].drafter = pair.drafter.get();
  variants[1].name = arguments.second;
  variants[1].drafter = other.get();
  ReplayRequest request;
  request.prompts = prompts;
  request.stop_tokens.assign(pair.tokenizer->stop_ids().begin(), pair.tokenizer->stop_ids().end());
  request.max_tokens = arguments.max_tokens;
  const ReplayResult result = replay_acceptance(*pair.target, variants, request);
  for (const ReplayFigures& figures : result.variants) {
    if (figures.pooled.steps == 0) {
      refuse(fmt::format(
          "{}: no step was drafted, every reply ended with its first token; give other prompts, or "
          "-n above 1",
          figures.name
      ));
    }
  }
  return {
      {arguments.first, result.variants[0].pooled}, {arguments.second, result.variants[1].pooled}};
}

/// Refuses a page in place of what is read, or where none can be, before the models run.
void prepare_page(
    const CompareArguments& arguments,
    const std::shared_ptr<const Checkpoint>& first,
    const std::shared_ptr<const Checkpoint>& second
) {
  const auto target = arguments.target.empty() ? nullptr : open_checkpoint(arguments.target);
  std::vector<std::string> others = arguments.files;
  others.push_back(arguments.prompts_file);
  prepare_output(
      all_inputs({first, second, target}, std::move(others)),
      arguments.html,
      0,
      ExistingOutput::kReplace
  );
}

void judge(const CompareArguments& arguments, ComparisonReport& report) {
  if (arguments.max_kl) {
    const double found = report.targets->mean_kl;
    report.limits.push_back({"--max-kl", *arguments.max_kl, found, found <= *arguments.max_kl});
  }
  if (arguments.min_agreement) {
    const double found = report.targets->top1_agreement;
    report.limits.push_back(
        {"--min-agreement", *arguments.min_agreement, found, found >= *arguments.min_agreement}
    );
  }
  if (arguments.max_acceptance_loss) {
    const double limit = *arguments.max_acceptance_loss;
    const double found = report.acceptance_loss();
    report.limits.push_back({"--max-acceptance-loss", limit, found, found <= limit});
  }
}

}  // namespace

int compare(const CompareArguments& arguments) {
  const auto first = open_checkpoint(arguments.first);
  const auto second = open_checkpoint(arguments.second);
  if (first->architecture() != second->architecture()) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{} is a {} and {} a {}; compare two forms of one model",
            arguments.first,
            first->architecture(),
            arguments.second,
            second->architecture()
        )
    );
  }
  refuse_idle_activation(arguments.activation, {first.get(), second.get()});
  if (!arguments.html.empty()) {
    prepare_page(arguments, first, second);
  }
  ComparisonReport report;
  report.first = arguments.first;
  report.second = arguments.second;
  if (first->architecture() == "gemma4") {
    report.targets = compare_two_targets(arguments, first, second);
  } else {
    report.drafters = compare_two_drafters(arguments);
  }
  judge(arguments, report);
  fmt::print("{}", arguments.json ? comparison_json(report) + "\n" : comparison_table(report));
  if (!arguments.html.empty()) {
    std::fflush(stdout);  // a page that cannot be written must not cost the figures
    AtomicFile file(arguments.html);
    const std::string page = comparison_html(report);
    file.write(std::as_bytes(std::span(page)));
    file.finish();
  }
  return report.passed() ? 0 : 1;
}

}  // namespace octet::cli
