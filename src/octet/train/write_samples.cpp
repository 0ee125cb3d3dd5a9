#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/json_writer.h"
#include "octet/base/mapped_file.h"
#include "octet/cli/terminal.h"
#include "octet/engine/generator.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/evaluate/digest.h"
#include "octet/formats/journal_file.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/quantize/output_place.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "octet/text/load_tokenizer.h"
#include "octet/train/options.h"
#include "octet/train/training_text.h"

namespace octet::train {
namespace {

constexpr int64_t kWithoutReply = 48;  // tokens given of a text in which nobody replies

/// Of everything that a text depends on but its number.
std::string settings_text(
    const SamplesArguments& arguments, const Checkpoint& target, const TrainingTexts& texts
) {
  Digest digest;
  digest.add(checkpoint_digest(target));
  digest.add(texts_digest(texts.texts));
  digest.add_text(fmt::format(
      "{} {} {} {}",
      arguments.length,
      arguments.prompt_tokens,
      arguments.temperature,
      arguments.seed
  ));
  return fmt::format("{:016x}", digest.value());
}

std::string text_line(
    std::span<const TokenId> tokens, int64_t prompt_tokens, const std::string& settings
) {
  JsonWriter json;
  json.begin_object().member("prompt_tokens", prompt_tokens).key("tokens").begin_array();
  for (const TokenId token : tokens) {
    json.value(static_cast<int64_t>(token));
  }
  json.end_array().member("settings", settings).end_object();
  return json.text() + "\n";
}

struct Done {
  int64_t lines = 0;
  uint64_t bytes = 0;
};

/// The whole lines that a run before has left, `most` of them at most.
Done done_before(const std::string& path, const std::string& settings, int64_t most) {
  const std::string partial = JournalFile::partial_path(path);
  const std::string text = read_whole_file(partial);
  const std::string end_of_line = fmt::format("\"settings\":\"{}\"}}", settings);
  Done done;
  while (done.lines < most) {
    const size_t end = text.find('\n', done.bytes);
    if (end == std::string::npos) {
      break;  // the run ended while it wrote
    }
    if (!std::string_view(text).substr(done.bytes, end - done.bytes).ends_with(end_of_line)) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "{}: was begun with other texts or settings; delete it, or go on with those", partial
          )
      );
    }
    done.bytes = end + 1;
    ++done.lines;
  }
  return done;
}

/// How many tokens of a text are given: as many as asked for, else all before its first reply, but
/// never so many that little is left to write.
int64_t given_tokens(
    const TrainingText& text, const SamplesArguments& arguments, const Tokenizer& tokenizer
) {
  if (arguments.prompt_tokens > 0) {
    return std::min(arguments.prompt_tokens, std::ssize(text.tokens));
  }
  const int64_t before = first_reply(text.tokens, tokenizer);
  const int64_t wanted = before > 0 ? before : std::min(kWithoutReply, std::ssize(text.tokens));
  return std::min(wanted, std::max<int64_t>(1, arguments.length * 3 / 4));
}

/// The target continues the beginning of a text as it would go on by itself, ends of turns and of
/// texts included.
std::vector<TokenId> continued(
    Generator& generator,
    const TrainingText& text,
    int64_t count,
    const SamplesArguments& arguments,
    uint64_t seed
) {
  GenerateRequest request;
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

void check_samples(const SamplesArguments& arguments) {
  std::vector<std::string> inputs = arguments.data_files;
  inputs.push_back(arguments.target);
  prepare_output(
      inputs,
      arguments.output,
      0,
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse
  );
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
}

}  // namespace

int write_samples(const SamplesArguments& arguments) {
  check_samples(arguments);
  const auto checkpoint = open_checkpoint(arguments.target);
  const auto tokenizer = load_tokenizer(*checkpoint);
  CpuOptions cpu;
  cpu.threads = arguments.threads;
  const auto ops = make_cpu_ops(cpu);
  const auto target = load_target(checkpoint, *ops, {});
  TextRules rules;
  rules.vocabulary = target->shape().vocabulary;
  rules.most_tokens = target->shape().context_length;
  rules.most_tokens_by = "the target's context length";
  TrainingTexts texts;
  for (const std::string& file : arguments.data_files) {
    read_training_texts(file, rules, tokenizer.get(), texts);
  }
  const std::string settings = settings_text(arguments, *checkpoint, texts);
  JournalFile file(arguments.output);
  const Done done = done_before(arguments.output, settings, arguments.count);
  file.cut(done.bytes);
  const SampleOrder order(std::ssize(texts.texts), arguments.seed);
  NoDrafter drafter;
  Generator generator(*target, drafter, *tokenizer, {.context_length = arguments.length});
  cli::Progress progress(true, std::chrono::minutes(1));
  for (int64_t i = done.lines; i < arguments.count; ++i) {
    progress.show(fmt::format("{} of {} texts", i + 1, arguments.count));
    const TrainingText& text = texts.texts[static_cast<size_t>(order.text(i))];
    const auto seed = arguments.seed + static_cast<uint64_t>(i);
    const int64_t given = given_tokens(text, arguments, *tokenizer);
    const std::vector<TokenId> tokens = continued(generator, text, given, arguments, seed);
    const std::string line = text_line(tokens, given, settings);
    file.append(std::as_bytes(std::span(line)));
  }
  file.finish();
  progress.clear();
  fmt::print(
      "{}: {} texts, {} of them from an earlier run\n",
      arguments.output,
      arguments.count,
      done.lines
  );
  return 0;
}

}  // namespace octet::train
