#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/chat/chat_format.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/json_writer.h"
#include "octet/cli/margins.h"
#include "octet/cli/pair.h"
#include "octet/cli/prompt_file.h"
#include "octet/cli/terminal.h"
#include "octet/engine/generator.h"
#include "octet/speculation/drafters/drafter_list.h"

namespace octet::cli {
namespace {

constexpr int kScriptedDrafts = 7;  // of a step, unless the pair's drafter proposes more
constexpr int kExitDifferent = 1;

/// Where a drafted run left the plain one.
struct Difference {
  std::string prompt;
  float temperature = 0.0F;
  std::string drafter;
  std::string block;  // "8", or "adaptive"
  size_t index = 0;   // of the first token that differs
  std::string plain;
  std::string drafted;
  float margin = 0.0F;  // lead of the best logit over the second at that place
};

struct Totals {
  int64_t prompts = 0;
  int64_t skipped = 0;  // longer than the context
  int64_t runs = 0;
  int longest_block = 1;
  int64_t tokens = 0;
  int64_t drafted = 0;
  int64_t accepted = 0;
  int64_t kv_bytes = 0;  // most of one run
  int64_t draft_context_bytes = 0;
};

class Prover {
 public:
  Prover(Pair& pair, const VerifyArguments& arguments, std::vector<std::string> drafters)
      : pair_(pair), arguments_(arguments), drafters_(std::move(drafters)) {}

  /// All drafters and block lengths on one prompt; the first difference if there is one.
  std::optional<Difference> prove(const Prompt& prompt, float temperature) {
    GenerateRequest request;
    request.prompt = encode_prompt(*pair_.tokenizer, prompt);
    const int64_t needed = static_cast<int64_t>(request.prompt.size()) + arguments_.max_tokens;
    if (needed >= pair_.context) {
      ++totals_.skipped;
      return std::nullopt;
    }
    request.sampling.temperature = temperature;
    request.sampling.seed = arguments_.seed;
    request.max_tokens = arguments_.max_tokens;
    request.rule = arguments_.rule;
    ++totals_.prompts;
    GenerateRequest plain = request;
    plain.draft_max = 0;
    Generator generator(*pair_.target, *pair_.drafter, *pair_.tokenizer, generator_options(needed));
    const GenerateResult reference = generator.generate(plain);
    for (const std::string& name : drafters_) {
      std::optional<Difference> difference = prove_drafter(name, request, reference);
      if (difference) {
        difference->prompt = prompt.id;
        difference->temperature = temperature;
        return difference;
      }
    }
    return std::nullopt;
  }

  const Totals& totals() const { return totals_; }

 private:
  GeneratorOptions generator_options(int64_t needed) const {
    return {.context_length = needed + 1, .kv_type = pair_.kv_type};
  }

  std::optional<Difference> prove_drafter(
      const std::string& name, const GenerateRequest& request, const GenerateResult& reference
  ) {
    std::unique_ptr<Drafter> scripted;
    if (name != "dflash") {
      DrafterInputs inputs;
      inputs.max_drafts = std::max(kScriptedDrafts, pair_.drafter->max_drafts());
      inputs.references.push_back(request.prompt);
      inputs.references.back().insert(
          inputs.references.back().end(), reference.tokens.begin(), reference.tokens.end()
      );
      scripted = new_drafter(name, *pair_.target, std::move(inputs));
    }
    Drafter& drafter = scripted != nullptr ? *scripted : *pair_.drafter;
    const int64_t needed = static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
    Generator generator(*pair_.target, drafter, *pair_.tokenizer, generator_options(needed));
    const auto differs = [&](int block, bool adaptive) -> std::optional<Difference> {
      GenerateRequest drafted = request;
      drafted.draft_max = block - 1;
      drafted.adapt_drafts = adaptive;
      const GenerateResult result = generator.generate(drafted);
      ++totals_.runs;
      totals_.tokens += static_cast<int64_t>(result.tokens.size());
      totals_.drafted += result.acceptance.drafted;
      totals_.accepted += result.acceptance.accepted;
      totals_.kv_bytes = std::max(totals_.kv_bytes, generator.kv_bytes());
      totals_.draft_context_bytes =
          std::max(totals_.draft_context_bytes, generator.draft_context_bytes());
      if (result.tokens == reference.tokens && result.text == reference.text) {
        return std::nullopt;
      }
      Difference difference = describe(request, reference, result);
      difference.drafter = name;
      difference.block = adaptive ? "adaptive" : fmt::format("{}", block);
      return difference;
    };
    // Longest first, so that every later run continues from a cache that drafting has used.
    const int longest = drafter.max_drafts() + 1;
    totals_.longest_block = std::max(totals_.longest_block, longest);
    std::optional<Difference> difference;
    for (int block = longest; block >= 1 && !difference; --block) {
      difference = differs(block, false);
    }
    return difference || longest == 1 ? difference : differs(longest, true);
  }

  Difference describe(
      const GenerateRequest& request, const GenerateResult& reference, const GenerateResult& result
  ) const {
    Difference difference;
    const auto places = std::mismatch(
        reference.tokens.begin(), reference.tokens.end(), result.tokens.begin(), result.tokens.end()
    );
    difference.index = static_cast<size_t>(places.first - reference.tokens.begin());
    difference.plain = reference.text;
    difference.drafted = result.text;
    if (difference.index < reference.tokens.size()) {
      std::vector<TokenId> text = request.prompt;
      text.insert(text.end(), reference.tokens.begin(), reference.tokens.end());
      const auto prompt_length = static_cast<int64_t>(request.prompt.size());
      difference.margin =
          top_margins(*pair_.target, pair_.kv_type, text, prompt_length).at(difference.index);
    }
    return difference;
  }

  Pair& pair_;
  const VerifyArguments& arguments_;
  std::vector<std::string> drafters_;
  Totals totals_;
};

std::vector<std::string> choose_drafters(const VerifyArguments& arguments) {
  const bool has_model = !arguments.pair.draft_model.empty();
  std::vector<std::string> names;
  for (const DrafterKind& kind : drafter_kinds()) {
    if (has_model || !kind.needs_draft_model) {
      names.emplace_back(kind.name);
    }
  }
  for (const std::string& asked : arguments.drafters) {
    if (std::find(names.begin(), names.end(), asked) == names.end()) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "--drafter {} is not available; with these files there are: {}{}",
              asked,
              fmt::join(names, ", "),
              asked == "dflash" ? " (dflash needs -md)" : ""
          )
      );
    }
  }
  return arguments.drafters.empty() ? names : arguments.drafters;
}

void print_difference(const Difference& difference) {
  fmt::print(
      "different: prompt {}, temperature {:g}, drafter {}, block length {}: token {} differs\n"
      "  the best logit leads the second by {:.3g} there\n"
      "  plain:   {}\n"
      "  drafted: {}\n",
      difference.prompt,
      difference.temperature,
      difference.drafter,
      difference.block,
      difference.index,
      difference.margin,
      difference.plain,
      difference.drafted
  );
}

void print_json(
    const Totals& totals, const std::optional<Difference>& difference, const MemoryFigures& memory
) {
  JsonWriter json;
  json.begin_object().member("identical", !difference.has_value());
  json.member("prompts", totals.prompts)
      .member("skipped", totals.skipped)
      .member("runs", totals.runs)
      .member("longest_block", int64_t{totals.longest_block});
  json.member("tokens", totals.tokens)
      .member("drafted", totals.drafted)
      .member("accepted", totals.accepted);
  if (difference) {
    json.key("difference").begin_object().member("prompt", difference->prompt);
    json.member("temperature", static_cast<double>(difference->temperature))
        .member("drafter", difference->drafter);
    json.member("block", difference->block)
        .member("index", static_cast<int64_t>(difference->index));
    json.member("margin", static_cast<double>(difference->margin));
    json.member("plain", difference->plain).member("drafted", difference->drafted).end_object();
  }
  write_memory(json, memory);
  json.end_object();
  fmt::print("{}\n", json.text());
}

}  // namespace

int verify(const VerifyArguments& arguments) {
  const std::vector<std::string> drafters = choose_drafters(arguments);
  const std::vector<Prompt> prompts = arguments.prompts_file.empty()
                                          ? built_in_prompts()
                                          : read_prompts(arguments.prompts_file, arguments.limit);
  Pair pair = load_pair(arguments.pair);
  Prover prover(pair, arguments, drafters);
  std::optional<Difference> difference;
  Progress progress(!arguments.json);
  for (const float temperature : arguments.temperatures) {
    for (size_t i = 0; i < prompts.size() && !difference; ++i) {
      progress.show(
          fmt::format("temperature {:g}: prompt {} of {}", temperature, i + 1, prompts.size())
      );
      difference = prover.prove(prompts[i], temperature);
    }
  }
  progress.clear();
  const Totals& totals = prover.totals();
  if (totals.prompts == 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "none of the {} prompts fits the context of {}; raise -c or lower -n",
            prompts.size(),
            pair.context
        )
    );
  }
  MemoryFigures memory = memory_figures(pair);
  memory.kv_bytes = totals.kv_bytes;
  memory.draft_context_bytes = totals.draft_context_bytes;
  if (arguments.json) {
    print_json(totals, difference, memory);
  } else if (difference) {
    print_difference(*difference);
  } else {
    fmt::print(
        "identical: {} prompts at each of {} temperatures, drafters {}, {}\n"
        "  {} runs, {} tokens, {} of {} drafts accepted; {} prompts skipped as longer than the "
        "context\n  memory: {}\n",
        totals.prompts / static_cast<int64_t>(arguments.temperatures.size()),
        arguments.temperatures.size(),
        fmt::join(drafters, ", "),
        totals.longest_block == 1
            ? "block length 1"
            : fmt::format("block lengths 1 to {} and adaptive", totals.longest_block),
        totals.runs,
        totals.tokens,
        totals.accepted,
        totals.drafted,
        totals.skipped / static_cast<int64_t>(arguments.temperatures.size()),
        memory_text(memory)
    );
  }
  return difference ? kExitDifferent : 0;
}

}  // namespace octet::cli
