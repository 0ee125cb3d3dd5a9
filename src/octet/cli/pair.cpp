#include "octet/cli/pair.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/process_memory.h"
#include "octet/base/thread_pool.h"
#include "octet/cli/checkpoint_report.h"
#include "octet/cli/draft_head.h"
#include "octet/cli/embedding_scale.h"
#include "octet/cli/terminal.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/dflash/draft_head.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/drafter_list.h"
#include "octet/text/load_tokenizer.h"

namespace octet::cli {
namespace {

constexpr int64_t kDefaultContext = 8192;
// Of learning costs before a reply that somebody waits for.
constexpr double kUnnoticedMs = 20.0;

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

int64_t choose_context(int64_t asked, const Gemma4Config& config, const std::string& path) {
  if (asked > config.context_length) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "-c {} is more than the {} positions of {}; ask for less",
            asked,
            config.context_length,
            path
        )
    );
  }
  return asked > 0 ? asked : std::min(kDefaultContext, config.context_length);
}

LoadProgress show_in(Progress& progress, std::string_view what) {
  return [&progress, what](std::string_view name, int64_t done, int64_t total) {
    progress.show(fmt::format(
        "Loading the {}: {} of {} {}", what, format_bytes(done), format_bytes(total), name
    ));
  };
}

/// Opens them and refuses, before anything is loaded, what does not fit by what the files say.
void open_files(const PairOptions& options, Pair& pair) {
  pair.target_checkpoint = open_checkpoint(options.model);
  require_architecture(*pair.target_checkpoint, "gemma4", "-m");
  if (!options.draft_model.empty()) {
    pair.draft_checkpoint = open_checkpoint(options.draft_model);
    require_architecture(*pair.draft_checkpoint, "dflash", "-md");
    require_fit(
        check_pair_of(*pair.target_checkpoint, *pair.draft_checkpoint).checks, options.draft_model
    );
  }
}

}  // namespace

EngineOptions Pair::engine_options(int parallel) const {
  EngineOptions options;
  options.context_length = context;
  options.kv_type = kv_type;
  options.parallel = parallel;
  options.queue_length = parallel;
  options.slots = parallel;
  options.step_rows = target->max_rows();
  options.learn_costs_ms = kUnnoticedMs;
  return options;
}

std::unique_ptr<DraftModel> load_draft_model(const PairOptions& options, Pair& pair) {
  const ChosenScale chosen = choose_embedding_scale(
      {options.embedding_scale,
       pair.draft_checkpoint,
       *pair.tokenizer,
       *pair.ops,
       *pair.target,
       *pair.target_checkpoint}
  );
  pair.embedding_scale = chosen.description;
  Progress progress(true);
  DrafterOptions drafter_options;
  drafter_options.embedding_scale = chosen.scale;
  drafter_options.kv_type = options.kv_type;
  drafter_options.draft_head = choose_draft_head(options.draft_head, *pair.draft_checkpoint);
  drafter_options.progress = show_in(progress, "drafter");
  auto model = load_drafter(pair.draft_checkpoint, *pair.ops, *pair.target, drafter_options);
  if (drafter_options.draft_head != nullptr) {
    pair.draft_head = describe_draft_head(*drafter_options.draft_head);
  }
  return model;
}

void refuse_idle_activation(
    ActivationMode mode, std::initializer_list<const Checkpoint*> checkpoints
) {
  const auto has_nvfp4 = [](const Checkpoint* checkpoint) {
    return checkpoint != nullptr && std::any_of(
                                        checkpoint->tensors().begin(),
                                        checkpoint->tensors().end(),
                                        [](const LogicalTensor& tensor) {
                                          return tensor.dtype == DType::kNVFP4 ||
                                                 tensor.dtype == DType::kNVFP4ModelOpt;
                                        }
                                    );
  };
  if (mode != ActivationMode::kAuto &&
      std::none_of(checkpoints.begin(), checkpoints.end(), has_nvfp4)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--activation {} is about NVFP4 weights and there are none; leave it out",
            activation_mode_name(mode)
        )
    );
  }
}

namespace {

void attach_drafter(const PairOptions& options, bool bare, Pair& pair) {
  DrafterInputs inputs;
  std::unique_ptr<DraftModel> model;
  if (pair.draft_checkpoint != nullptr) {
    model = load_draft_model(options, pair);
    pair.draft_model = model.get();
  }
  const bool drafts = model != nullptr && !bare;
  (drafts ? inputs.draft_model : pair.bare_draft_model) = std::move(model);
  pair.drafter = new_drafter(drafts ? "dflash" : "none", *pair.target, std::move(inputs));
}

}  // namespace

Pair load_pair(const PairOptions& options, PairNeeds needs) {
  const auto start = std::chrono::steady_clock::now();
  if (options.embedding_scale && options.draft_model.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--embedding-scale is about a drafter and none is given; add -md or leave it out"
    );
  }
  if (options.draft_head != kDraftHeadAuto && options.draft_model.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--draft-head is about a drafter and none is given; add -md or leave it out"
    );
  }
  Pair pair;
  pair.kv_type = options.kv_type;
  pair.tables = options.tables;
  pair.ops =
      needs.ops != nullptr
          ? std::move(needs.ops)
          : make_cpu_ops(
                {.threads = options.threads, .isa = options.isa, .activation = options.activation}
            );
  const int threads = options.threads > 0 ? options.threads : ThreadPool::usable_cpus();
  pair.machine = fmt::format("{}, {} thread{}", pair.ops->name(), threads, threads == 1 ? "" : "s");
  open_files(options, pair);
  if (!needs.other_weights) {
    refuse_idle_activation(
        options.activation, {pair.target_checkpoint.get(), pair.draft_checkpoint.get()}
    );
  }
  pair.tokenizer = load_tokenizer(*pair.target_checkpoint);
  const Gemma4Config config = read_gemma4_config(*pair.target_checkpoint);
  pair.context = choose_context(options.context, config, options.model);
  pair.program_bytes = resident_anonymous_bytes();
  if (needs.cache_positions.empty()) {
    needs.cache_positions.assign(static_cast<size_t>(needs.texts), pair.context);
  }
  int64_t head_bytes = 0;
  if (pair.draft_checkpoint != nullptr) {
    const auto head = choose_draft_head(options.draft_head, *pair.draft_checkpoint);
    head_bytes = head != nullptr ? std::ssize(head->at(kDraftHeadTensor).data) : 0;
  }
  if (options.memory_limit || needs.forecast) {
    pair.forecast = plan_memory(
        options,
        {pair.target_checkpoint.get(),
         pair.draft_checkpoint.get(),
         needs.cache_positions,
         needs.cache_ceiling_bytes,
         needs.texts,
         needs.cycles,
         config.vocabulary,
         pair.program_bytes + head_bytes,
         needs.other_bytes,
         needs.context_flag},
        *pair.ops
    );
  }
  {
    Progress progress(true);
    TargetOptions target_options;
    target_options.tables = options.tables;
    target_options.progress = show_in(progress, "target");
    pair.target = load_target(pair.target_checkpoint, *pair.ops, target_options);
  }
  attach_drafter(options, needs.bare_draft_model, pair);
  if (options.lock_memory) {
    lock_process_memory();
  }
  pair.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return pair;
}

MemoryFigures memory_figures(const Pair& pair) {
  const ModelMemory target = pair.target->memory();
  const ModelMemory draft =
      pair.draft_model != nullptr ? pair.draft_model->memory() : ModelMemory();
  MemoryFigures figures;
  figures.weights_bytes = target.weights_bytes;
  figures.drafter_bytes = draft.weights_bytes;
  figures.kv_type = pair.kv_type;
  figures.scratch_bytes = target.scratch_bytes + draft.scratch_bytes + pair.ops->scratch_bytes() +
                          pair.drafter->scratch_bytes();
  figures.program_bytes = pair.program_bytes;
  figures.tables_bytes = target.tables_bytes;
  figures.tables_in_memory = pair.tables == TablePlace::kMemory;
  figures.peak_resident_bytes = peak_resident_bytes();
  return figures;
}

}  // namespace octet::cli
