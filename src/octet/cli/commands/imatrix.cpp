#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/rollouts.h"
#include "octet/cli/terminal.h"
#include "octet/cli/text_files.h"
#include "octet/formats/checkpoint_files.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/quantize/collect_importance.h"
#include "octet/quantize/output_place.h"
#include "octet/text/load_tokenizer.h"

namespace octet::cli {
namespace {

std::vector<std::string> dataset_names(const ImatrixArguments& arguments) {
  std::vector<std::string> names;
  for (const std::string& path : arguments.text.files) {
    names.push_back(std::filesystem::path(path).filename().string());
  }
  if (arguments.text.rollouts > 0) {
    names.push_back(fmt::format("{} rollouts", arguments.text.rollouts));
  }
  return names;
}

}  // namespace

int imatrix(const ImatrixArguments& arguments) {
  if (arguments.text.files.empty() && arguments.text.rollouts == 0) {
    throw Error(
        ErrorKind::kInvalidArgument, "nothing to collect from; give text with -f, or --rollouts N"
    );
  }
  const auto checkpoint = open_checkpoint(arguments.model);
  std::vector<std::string> others = arguments.text.files;  // the matrix to add to may be replaced
  others.push_back(arguments.text.prompts_file);
  prepare_output(
      all_inputs({checkpoint}, std::move(others)),
      arguments.output,
      0,
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse
  );
  ImportanceMatrix before;
  if (!arguments.add_to.empty()) {
    before = read_importance(arguments.add_to);
    if (before.counts_chunks) {
      count_tokens(before, arguments.text.chunk_tokens);
    }
    require_importance_of(before, *checkpoint);  // what else is added has the model's own widths
  }
  auto watching = std::make_unique<ImportanceOps>(
      make_cpu_ops({.threads = arguments.threads, .isa = arguments.isa})
  );
  const auto tokenizer = load_tokenizer(*checkpoint);
  Progress progress(!arguments.quiet);
  // Rollouts are written by a target of their own: what they multiply is counted once, with the
  // rest.
  std::vector<std::vector<TokenId>> texts;
  if (arguments.text.rollouts > 0) {
    const auto ops = make_cpu_ops({.threads = arguments.threads, .isa = arguments.isa});
    const auto writer = load_target(checkpoint, *ops, {});
    texts = write_rollouts(arguments.text, *writer, *tokenizer, progress);
  }
  for (std::vector<TokenId>& text : read_texts(arguments.text.files, *tokenizer)) {
    texts.push_back(std::move(text));
  }
  const auto target = load_target(checkpoint, *watching, {});
  ImportanceMatrix matrix = collect_importance(
      *target,
      *watching,
      texts,
      tokenizer->bos(),
      {arguments.text.chunk_tokens, arguments.text.max_chunks},
      [&](int64_t done, int64_t chunks) {
        progress.show(fmt::format("Chunk {} of {}", done, chunks));
      }
  );
  matrix.datasets = dataset_names(arguments);
  add_importance(before, matrix);
  write_importance(arguments.output, before);
  progress.clear();
  if (!arguments.quiet) {
    fmt::print(
        "{}: {} matrices, {} chunks of {} tokens\n",
        arguments.output,
        before.entries.size(),
        before.chunk_count,
        before.chunk_size
    );
  }
  return 0;
}

}  // namespace octet::cli
