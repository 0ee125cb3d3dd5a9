#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/json_writer.h"
#include "octet/cli/terminal.h"
#include "octet/engine/generator.h"
#include "octet/formats/atomic_file.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/options.h"
#include "octet/train/training_text.h"

namespace octet::train {
namespace {

std::string text_line(std::span<const TokenId> tokens, int64_t prompt_tokens) {
  JsonWriter json;
  json.begin_object().member("prompt_tokens", prompt_tokens).key("tokens").begin_array();
  for (const TokenId token : tokens) {
    json.value(static_cast<int64_t>(token));
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

/// The target continues the beginning of a text as it would go on by itself, ends of turns and of
/// texts included.
std::vector<TokenId> continued(
    Generator& generator, const TrainingText& text, const SamplesArguments& arguments, uint64_t seed
) {
  GenerateRequest request;
  const auto count = std::min(arguments.prompt_tokens, std::ssize(text.tokens));
  request.prompt.assign(text.tokens.begin(), text.tokens.begin() + count);
  request.sampling.temperature = static_cast<float>(arguments.temperature);
  request.sampling.seed = seed;
  request.stop_tokens = std::vector<TokenId>();
  request.max_tokens = arguments.length - count;
  std::vector<TokenId> tokens = request.prompt;
  const GenerateResult result = generator.generate(request);
  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
  return tokens;
}

}  // namespace

int write_samples(const SamplesArguments& arguments) {
  if (!arguments.force && std::filesystem::exists(arguments.output)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("{}: is there already; --force replaces it", arguments.output)
    );
  }
  if (arguments.prompt_tokens >= arguments.length) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--prompt-tokens is {} of {} tokens, which leaves nothing to write",
            arguments.prompt_tokens,
            arguments.length
        )
    );
  }
  const auto checkpoint = open_checkpoint(arguments.target);
  const auto tokenizer = load_tokenizer(*checkpoint);
  CpuOptions cpu;
  cpu.threads = arguments.threads;
  const auto ops = make_cpu_ops(cpu);
  const auto target = load_target(checkpoint, *ops, {});
  TextRules rules;
  rules.vocabulary = target->shape().vocabulary;
  rules.most_tokens = target->shape().context_length;
  TrainingTexts texts;
  for (const std::string& file : arguments.data_files) {
    read_training_texts(file, rules, tokenizer.get(), texts);
  }
  const SampleOrder order(std::ssize(texts.texts), arguments.seed);
  NoDrafter drafter;
  Generator generator(*target, drafter, *tokenizer, {.context_length = arguments.length});
  cli::Progress progress(true);
  AtomicFile file(arguments.output);
  for (int64_t i = 0; i < arguments.count; ++i) {
    progress.show(fmt::format("{} of {} texts", i + 1, arguments.count));
    const TrainingText& text = texts.texts[static_cast<size_t>(order.text(i))];
    const auto seed = arguments.seed + static_cast<uint64_t>(i);
    const std::vector<TokenId> tokens = continued(generator, text, arguments, seed);
    const std::string line =
        text_line(tokens, std::min(arguments.prompt_tokens, std::ssize(text.tokens)));
    file.write(std::as_bytes(std::span(line)));
  }
  file.finish();
  progress.clear();
  fmt::print("{}: {} texts\n", arguments.output, arguments.count);
  return 0;
}

}  // namespace octet::train
