#include "octet/cli/argument_groups.h"

#include <fmt/format.h>

#include "octet/base/cpu_affinity.h"
#include "octet/cli/memory_figures.h"

namespace octet::cli {
namespace {

void add_memory(CLI::App& app, PairOptions& pair) {
  app.add_option_function<std::string>(
         "--memory-limit",
         [&pair](const std::string& text) { pair.memory_limit = parse_size(text); },
         "refuse, before loading, what would need more memory: 3.6GB, 512M ... (tables that stay "
         "in "
         "the file are not counted)"
  )
      ->type_name("SIZE")
      ->group(kGroupMachine);
  app.add_flag_callback(
         "--no-mmap",
         [&pair] { pair.tables = TablePlace::kMemory; },
         "copy the embedding tables into memory instead of reading their rows from the file"
  )
      ->group(kGroupMachine);
  app.add_flag("--mlock", pair.lock_memory, "lock what was loaded into memory: no paging out")
      ->group(kGroupMachine);
}

}  // namespace

void add_activation(CLI::App& app, ActivationMode& mode, const char* group) {
  app.add_option(
         "--activation",
         mode,
         "how activations enter products with NVFP4 weights: auto (as the file says), fast (8-bit "
         "integers), w4a16 (16-bit floats), w4a4 (E2M1, needs input scales)"
  )
      ->transform(CLI::CheckedTransformer(std::map<std::string, ActivationMode>{
          {"auto", ActivationMode::kAuto},
          {"fast", ActivationMode::kFast},
          {"w4a16", ActivationMode::kW4A16},
          {"w4a4", ActivationMode::kW4A4}}))
      ->option_text("auto|fast|w4a16|w4a4")
      ->group(group);
}

void add_pair(CLI::App& app, PairOptions& pair) {
  app.add_option(
         "-m,--model",
         pair.model,
         "target: a GGUF file, a .safetensors file or a Hugging Face folder"
  )
      ->required()
      ->type_name("PATH")
      ->group(kGroupModels);
  app.add_option(
         "--draft-model", pair.draft_model, "DFlash drafter of that target; also spelled -md"
  )
      ->type_name("PATH")
      ->group(kGroupModels);
  app.add_option_function<std::string>(
         "--embedding-scale",
         [&pair](const std::string& text) {
           float scale = 0.0F;
           if (text == "auto") {
             pair.embedding_scale.reset();
           } else if (CLI::detail::lexical_cast(text, scale) && scale > 0.0F) {
             pair.embedding_scale = scale;
           } else {
             throw CLI::ValidationError(
                 "--embedding-scale", "expects auto or a positive number, not '" + text + "'"
             );
           }
         },
         "factor on the drafter's token embeddings; auto: from its file, else measured once and "
         "stored beside it"
  )
      ->type_name("auto|X")
      ->group(kGroupModels);
  add_draft_head_choice(app, pair.draft_head);
  app.add_option(
         "-c,--ctx-size",
         pair.context,
         "positions of the context; 0: 8192 or the model's limit if less"
  )
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24))
      ->type_name("N")
      ->group(kGroupMachine);
  add_threads(app, pair.threads, kGroupMachine);
  add_isa(app, pair.isa, kGroupMachine);
  add_activation(app, pair.activation, kGroupMachine);
  add_kv_type(app, pair.kv_type);
  add_memory(app, pair);
}

void add_chat_template(CLI::App& app, std::string& choice, const char* group) {
  app.add_option(
         "--chat-template",
         choice,
         "in place of the one that the model's files carry: bolt or gemma4, which are built in, or "
         "a file"
  )
      ->type_name("TEMPLATE")
      ->group(group);
}

void add_draft_head_choice(CLI::App& app, std::string& choice) {
  app.add_option(
         "--draft-head",
         choice,
         "head that drafts are read from: auto (default): one stored beside the drafter by "
         "`octet draft-head`, else the pair's; full: the pair's; or a file"
  )
      ->option_text("auto|full|PATH")
      ->group(kGroupModels);
}

void add_kv_type(CLI::App& app, KvType& type) {
  app.add_option(
         "--kv-type",
         type,
         "type of the K/V cache: bf16 (default), f32, or q8_0 (about half of bf16)"
  )
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, KvType>{
              {"bf16", KvType::kBF16}, {"f32", KvType::kF32}, {"q8_0", KvType::kQ8}},
          CLI::ignore_case
      ))
      ->option_text("bf16|f32|q8_0")
      ->group(kGroupMachine);
}

void add_threads(CLI::App& app, int& threads, const char* group) {
  app.add_option("-t,--threads", threads, "threads; 0: all usable CPUs")
      ->check(CLI::Range(0, 1024))
      ->type_name("N")
      ->group(group);
  app.add_option_function<std::string>(
         "--cpus",
         [](const std::string& list) { run_on_cpus(parse_cpu_list(list)); },
         "run on these CPUs alone: 0,2-5; for boards with large and small cores"
  )
      ->type_name("LIST")
      ->group(group);
}

void add_isa(CLI::App& app, std::string& isa, const char* group) {
  app.add_option(
         "--isa", isa, "instruction set: portable, avx2, avx512 ...; default: the best the CPU has"
  )
      ->type_name("NAME")
      ->group(group);
}

void add_sampling(CLI::App& app, SamplingOptions& sampling) {
  const char* group = kGroupSampling;
  add_optional(
      app, "--temp,--temperature", sampling.temperature, "0: greedy", CLI::Range(0.0, 100.0), group
  );
  add_optional(
      app, "--top-k", sampling.top_k, "0: off", CLI::Range(int64_t{0}, int64_t{1} << 30), group
  );
  add_optional(app, "--top-p", sampling.top_p, "1: off", CLI::Range(0.0, 1.0), group);
  add_optional(app, "--min-p", sampling.min_p, "0: off", CLI::Range(0.0, 1.0), group);
  app.add_option_function<uint64_t>(
         "-s,--seed",
         [&sampling](uint64_t seed) { sampling.seed = seed; },
         "default: a fresh one, stated in the summary"
  )
      ->type_name("N")
      ->group(group);
  app.add_option_function<float>(
         "--repeat-penalty",
         [&sampling](float penalty) { sampling.repetition_penalty = penalty; },
         "1: off"
  )
      ->type_name("X")
      ->group(group);
  app.add_option("--presence-penalty", sampling.presence_penalty, "0: off")
      ->type_name("X")
      ->group(group);
  app.add_option("--frequency-penalty", sampling.frequency_penalty, "0: off")
      ->type_name("X")
      ->group(group);
  app.add_option(
         "--repeat-last-n",
         sampling.penalty_last_n,
         "penalties look at the last N tokens; 0: all of the reply"
  )
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->group(group);
  app.add_flag(
         "--penalise-prompt", sampling.penalise_prompt, "penalties count the prompt's tokens too"
  )
      ->group(group);
  app.add_option(
         "--logit-bias",
         sampling.logit_bias,
         "add BIAS to a token's logit; -100 forbids it; repeatable"
  )
      ->type_name("ID=BIAS")
      ->expected(1)
      ->take_all()
      ->group(group);
}

void add_draft_policy(CLI::App& app, bool& adapt_drafts) {
  app.add_option_function<std::string>(
         "--draft-policy",
         [&adapt_drafts](const std::string& name) { adapt_drafts = name == "adaptive"; },
         "adaptive (default): as many drafts a step as measured costs and acceptance say will pay, "
         "up to --draft-max; fixed: always --draft-max"
  )
      ->check(CLI::IsMember({"adaptive", "fixed"}))
      ->option_text("adaptive|fixed")
      ->group(kGroupDrafting);
}

void add_reply_limits(CLI::App& app, int64_t& limit, int64_t& max_tokens) {
  app.add_option("--limit", limit, "use the first N prompts of a file")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option(
         "-n,--predict", max_tokens, fmt::format("most tokens of a reply (default {})", max_tokens)
  )
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->type_name("N");
}

void add_prompts(
    CLI::App& app, std::string& file, int64_t& limit, int64_t& max_tokens, const std::string& text
) {
  CLI::Option* prompts = app.add_option("--prompts", file, text)->type_name("FILE.jsonl");
  add_reply_limits(app, limit, max_tokens);
  app.get_option("--limit")->needs(prompts);
}

}  // namespace octet::cli
