#include "octet/cli/pair.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/embedding_scale.h"
#include "octet/cli/terminal.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/drafter_list.h"
#include "octet/text/load_tokenizer.h"

namespace octet::cli {
namespace {

constexpr int64_t kDefaultContext = 8192;

void require_architecture(
    const Checkpoint& checkpoint, std::string_view expected, std::string_view flag
) {
  const std::string& found = checkpoint.architecture();
  if (found != expected) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: {} needs a {} checkpoint and this one is {}{}",
            checkpoint.path,
            flag,
            expected,
            found,
            expected == "gemma4" && found == "dflash" ? "; give it to -md and the target to -m" : ""
        )
    );
  }
}

int64_t choose_context(int64_t asked, const TargetShape& shape, const std::string& path) {
  if (asked > shape.context_length) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "-c {} is more than the {} positions of {}; ask for less",
            asked,
            shape.context_length,
            path
        )
    );
  }
  return asked > 0 ? asked : std::min(kDefaultContext, shape.context_length);
}

LoadProgress show_in(Progress& progress, std::string_view what) {
  return [&progress, what](std::string_view name, int64_t done, int64_t total) {
    progress.show(fmt::format(
        "Loading the {}: {} of {} {}", what, format_bytes(done), format_bytes(total), name
    ));
  };
}

}  // namespace

std::unique_ptr<DraftModel> load_draft_model(const PairOptions& options, Pair& pair) {
  const ChosenScale chosen = choose_embedding_scale(
      {options.embedding_scale, pair.draft_checkpoint, *pair.tokenizer, *pair.ops, *pair.target}
  );
  pair.embedding_scale = chosen.description;
  Progress progress(true);
  DrafterOptions drafter_options;
  drafter_options.embedding_scale = chosen.scale;
  drafter_options.kv_type = options.kv_type;
  drafter_options.progress = show_in(progress, "drafter");
  auto model = load_drafter(pair.draft_checkpoint, *pair.ops, *pair.target, drafter_options);
  pair.draft_memory = model->memory();
  return model;
}

Pair load_pair(const PairOptions& options, std::unique_ptr<Ops> ops) {
  const auto start = std::chrono::steady_clock::now();
  if (options.embedding_scale && options.draft_model.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--embedding-scale is about a drafter and none is given; add -md or leave it out"
    );
  }
  Pair pair;
  pair.kv_type = options.kv_type;
  pair.ops = ops != nullptr ? std::move(ops)
                            : make_cpu_ops({.threads = options.threads, .isa = options.isa});
  pair.target_checkpoint = open_checkpoint(options.model);
  require_architecture(*pair.target_checkpoint, "gemma4", "-m");
  if (!options.draft_model.empty()) {
    pair.draft_checkpoint = open_checkpoint(options.draft_model);
    require_architecture(*pair.draft_checkpoint, "dflash", "-md");
  }
  pair.tokenizer = load_tokenizer(*pair.target_checkpoint);
  {
    Progress progress(true);
    TargetOptions target_options;
    target_options.progress = show_in(progress, "target");
    pair.target = load_target(pair.target_checkpoint, *pair.ops, target_options);
  }
  pair.context = choose_context(options.context, pair.target->shape(), options.model);
  DrafterInputs inputs;
  if (pair.draft_checkpoint != nullptr) {
    inputs.draft_model = load_draft_model(options, pair);
    pair.drafter = new_drafter("dflash", *pair.target, std::move(inputs));
  } else {
    pair.drafter = new_drafter("none", *pair.target, std::move(inputs));
  }
  pair.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return pair;
}

}  // namespace octet::cli
