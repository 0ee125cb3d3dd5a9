#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/json_writer.h"
#include "octet/cli/pair.h"
#include "octet/cli/prompt_file.h"
#include "octet/cli/terminal.h"
#include "octet/engine/policy_trial.h"

namespace octet::cli {
namespace {

// Replies that plain decoding writes in less say little about a policy that learns from them.
constexpr double kTellingMs = 200.0;

struct TrialPrompts {
  std::vector<std::vector<TokenId>> tokens;
  int64_t skipped = 0;  // that do not fit the context with a reply
};

TrialPrompts encode_prompts(const Pair& pair, const PolicyBenchArguments& arguments) {
  const std::vector<Prompt> prompts = arguments.prompts_file.empty()
                                          ? built_in_prompts()
                                          : read_prompts(arguments.prompts_file, arguments.limit);
  TrialPrompts encoded;
  for (const Prompt& prompt : prompts) {
    std::vector<TokenId> tokens = encode_prompt(*pair.tokenizer, prompt);
    if (std::ssize(tokens) + arguments.max_tokens <= pair.context) {
      encoded.tokens.push_back(std::move(tokens));
    } else {
      ++encoded.skipped;
    }
  }
  if (encoded.tokens.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("no prompt fits the context of {}; raise -c or lower -n", pair.context)
    );
  }
  return encoded;
}

std::string guesses(const std::optional<double>& acceptance) {
  return acceptance ? fmt::format("right with probability {:g}", *acceptance) : "the drafter's own";
}

std::string arm_line(const PolicyArm& arm, const PolicyArm& plain) {
  return fmt::format(
      "  {:<10} {:>9.2f} {:>10.2f} {:>10.2f}\n",
      arm.name,
      arm.ms_per_token(),
      arm.acceptance.tokens_per_step(),
      arm.ms_per_token() / plain.ms_per_token()
  );
}

std::string table(const std::optional<double>& acceptance, const PolicyTrialResult& result) {
  std::string out = fmt::format(
      "drafts: {}; {} tokens\n  {:<10} {:>9} {:>10} {:>10}\n",
      guesses(acceptance),
      result.plain.tokens,
      "",
      "ms/token",
      "per step",
      "of plain"
  );
  out += arm_line(result.plain, result.plain);
  for (const PolicyArm& arm : result.fixed) {
    out += arm_line(arm, result.plain);
  }
  out += arm_line(result.adaptive, result.plain);
  out += fmt::format(
      "  adaptive takes {:.3f} of plain decoding's time, {:.3f} of the best fixed length's ({})\n",
      result.over_plain(),
      result.over_best(),
      result.best().name
  );
  if (result.plain.ms < kTellingMs) {
    out += fmt::format(
        "  The replies take {:.0f} ms in all: a few drafts more or less are several percent. Give "
        "more --prompts or a larger -n.\n",
        result.plain.ms
    );
  }
  return out;
}

void write_arm(JsonWriter& json, const PolicyArm& arm) {
  json.begin_object().member("name", arm.name).member("tokens", arm.tokens);
  json.member("ms_per_token", arm.ms_per_token());
  json.member("tokens_per_step", arm.acceptance.tokens_per_step());
  json.member("drafted", arm.acceptance.drafted).member("accepted", arm.acceptance.accepted);
  json.end_object();
}

void write_trial(
    JsonWriter& json, const std::optional<double>& acceptance, const PolicyTrialResult& result
) {
  json.begin_object().member("drafts", guesses(acceptance)).key("arms").begin_array();
  write_arm(json, result.plain);
  for (const PolicyArm& arm : result.fixed) {
    write_arm(json, arm);
  }
  write_arm(json, result.adaptive);
  json.end_array().member("over_plain", result.over_plain());
  json.member("over_best", result.over_best()).member("best", result.best().name).end_object();
}

PolicyTrialRequest request_of(
    const PolicyBenchArguments& arguments, const Pair& pair, const TrialPrompts& prompts
) {
  PolicyTrialRequest request;
  request.prompts = prompts.tokens;
  request.sampling.temperature = arguments.temperature;
  request.sampling.seed = arguments.seed;
  if (!arguments.ignore_end) {
    request.stop_tokens.assign(
        pair.tokenizer->stop_ids().begin(), pair.tokenizer->stop_ids().end()
    );
  }
  request.max_tokens = arguments.max_tokens;
  request.rounds = arguments.rounds;
  request.lengths = arguments.lengths;
  request.kv_type = pair.kv_type;
  request.learn_costs_ms = kWarmUpMs;
  return request;
}

/// One trial an acceptance; one with the drafter's own guesses where none was asked for.
std::vector<std::optional<double>> trials_of(const PolicyBenchArguments& arguments) {
  std::vector<std::optional<double>> trials(
      arguments.acceptances.begin(), arguments.acceptances.end()
  );
  if (trials.empty()) {
    trials.push_back(std::nullopt);
  }
  return trials;
}

}  // namespace

int bench_policy(const PolicyBenchArguments& arguments) {
  // Plain and adaptive decoding, every length, and the scout that writes a reply first.
  PairNeeds needs;
  needs.texts = 3 + std::ssize(arguments.lengths);
  needs.cycles = needs.texts;
  Pair pair = load_pair(arguments.pair, std::move(needs));
  const TrialPrompts prompts = encode_prompts(pair, arguments);
  PolicyTrialRequest request = request_of(arguments, pair, prompts);
  Progress progress(!arguments.json);
  JsonWriter json;
  json.begin_object().member("backend", pair.machine);
  json.member("prompts", std::ssize(prompts.tokens)).member("skipped", prompts.skipped);
  json.key("trials").begin_array();
  int64_t kv_bytes = 0;
  int64_t draft_context_bytes = 0;
  for (const std::optional<double>& acceptance : trials_of(arguments)) {
    request.acceptance = acceptance;
    const PolicyTrialResult result =
        try_policy(*pair.target, *pair.drafter, request, [&](int64_t done) {
          progress.show(fmt::format("Prompt {} of {}", done, prompts.tokens.size()));
        });
    progress.clear();
    kv_bytes = std::max(kv_bytes, result.kv_bytes);
    draft_context_bytes = std::max(draft_context_bytes, result.draft_context_bytes);
    if (arguments.json) {
      write_trial(json, acceptance, result);
    } else {
      fmt::print("{}", table(acceptance, result));
    }
  }
  json.end_array();
  MemoryFigures memory = memory_figures(pair);
  memory.kv_bytes = kv_bytes;
  memory.draft_context_bytes = draft_context_bytes;
  if (arguments.json) {
    write_memory(json, memory);
    fmt::print("{}\n", json.end_object().text());
  } else {
    fmt::print(
        "{}; {} prompts, {} skipped as longer than the context\nmemory: {}\n",
        pair.machine,
        prompts.tokens.size(),
        prompts.skipped,
        memory_text(memory)
    );
  }
  return 0;
}

}  // namespace octet::cli
