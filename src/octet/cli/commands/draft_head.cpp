#include "octet/cli/draft_head.h"

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/chat/chat_format.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/pair.h"
#include "octet/cli/prompt_file.h"
#include "octet/cli/reply.h"
#include "octet/cli/terminal.h"
#include "octet/cli/text_files.h"
#include "octet/engine/generator.h"
#include "octet/engine/shortlist.h"
#include "octet/formats/draft_head_file.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/models/dflash/draft_head.h"
#include "octet/quantize/output_place.h"

namespace octet::cli {
namespace {

/// Counts what the pair answers, and the questions: replies take up their words.
void count_replies(Pair& pair, const DraftHeadArguments& arguments, TokenCounts& counts) {
  const std::vector<Prompt> prompts = read_prompts(arguments.prompts_file, arguments.limit);
  Generator generator(*pair.target, *pair.drafter, *pair.tokenizer, pair.generator_options());
  SamplingOptions sampling;
  sampling.seed = 1;
  Progress progress(true);
  for (size_t i = 0; i < prompts.size(); ++i) {
    progress.show(fmt::format("Prompt {} of {}", i + 1, prompts.size()));
    std::vector<ChatMessage> messages;
    if (!prompts[i].system.empty()) {
      messages.push_back({ChatRole::kSystem, prompts[i].system});
    }
    messages.push_back({ChatRole::kUser, prompts[i].text});
    GenerateRequest request;
    request.prompt = encode_chat(*pair.tokenizer, messages, ChatOptions{});
    if (std::ssize(request.prompt) >= pair.context) {
      continue;
    }
    request.sampling = resolve_sampling(sampling, *pair.target_checkpoint);
    request.max_tokens = arguments.max_tokens;
    counts.add(request.prompt);
    counts.add(generator.generate(request).tokens);
  }
}

/// End tokens, and the marks of turns, thoughts and tools: rare in any sample, sure to come.
std::vector<TokenId> control_tokens(const Tokenizer& tokenizer, const TokenCounts& counts) {
  std::vector<TokenId> tokens(tokenizer.stop_ids().begin(), tokenizer.stop_ids().end());
  for (TokenId token = 0; token < tokenizer.vocabulary_size(); ++token) {
    const TokenId one[] = {token};
    if (tokenizer.is_control(token) && counts.covered(one) > 0.0) {
      tokens.push_back(token);
    }
  }
  return tokens;
}

const LogicalTensor& whole_head(const Pair& pair) {
  const LogicalTensor* own = pair.draft_checkpoint->find("output.weight");
  const LogicalTensor* head = own != nullptr ? own : pair.target->head_tensor();
  OCTET_CHECK(head != nullptr);
  return *head;
}

/// Where the head is to be written. Throws Error, before hours of counting, for a place in which
/// it cannot be or which holds what it is made from.
std::string output_of(const DraftHeadArguments& arguments) {
  std::string path = arguments.output.empty()
                         ? draft_head_path(*open_checkpoint(arguments.pair.draft_model))
                         : arguments.output;
  std::vector<std::string> inputs = arguments.text_files;
  inputs.insert(
      inputs.end(), {arguments.pair.model, arguments.pair.draft_model, arguments.prompts_file}
  );
  prepare_output(inputs, path, 0, ExistingOutput::kReplace);
  return path;
}

}  // namespace

int draft_head(const DraftHeadArguments& arguments) {
  const std::string path = output_of(arguments);
  PairOptions options = arguments.pair;
  options.draft_head = kDraftHeadFull;  // the one that is being replaced may not fit any more
  Pair pair = load_pair(options);
  const LogicalTensor& whole = whole_head(pair);
  if (arguments.tokens > whole.rows()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "--tokens {} is more than the vocabulary of {}; ask for less",
            arguments.tokens,
            whole.rows()
        )
    );
  }
  const DType dtype = arguments.dtype.value_or(whole.dtype);
  if (dtype_facts(dtype).gguf_id < 0 || whole.cols() % dtype_facts(dtype).block_values != 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "a head of {} columns cannot be stored as {}; choose another --type",
            whole.cols(),
            dtype_facts(dtype).name
        )
    );
  }
  TokenCounts counts(whole.rows());
  std::vector<TokenId> tokens;
  if (arguments.tokens > 0) {
    for (const std::vector<TokenId>& text : read_texts(arguments.text_files, *pair.tokenizer)) {
      counts.add(text);
    }
    if (!arguments.prompts_file.empty()) {
      count_replies(pair, arguments, counts);
    }
    tokens = counts.shortlist(arguments.tokens, control_tokens(*pair.tokenizer, counts));
  }

  ThreadPool pool(arguments.pair.threads > 0 ? arguments.pair.threads : ThreadPool::usable_cpus());
  const std::vector<std::byte> data = encode_draft_head(whole, tokens, dtype, pool);
  DraftHeadContents contents;
  contents.metadata.set("general.architecture", std::string(kDraftHeadArchitecture));
  contents.metadata.set(std::string(kDraftHeadVocabularyKey), static_cast<uint32_t>(whole.rows()));
  if (!tokens.empty()) {
    contents.metadata.set(
        std::string(kDraftHeadTokensKey),
        MetadataArray(std::vector<uint32_t>(tokens.begin(), tokens.end()))
    );
  }
  contents.tensor = std::string(kDraftHeadTensor);
  contents.dtype = dtype;
  contents.shape = {tokens.empty() ? whole.rows() : std::ssize(tokens), whole.cols()};
  contents.data = data;
  write_draft_head(path, contents);
  load_draft_head(*open_draft_head(path), whole, *pair.ops);  // what was written is usable

  fmt::print("{}\n", describe_draft_head(*open_draft_head(path)));
  if (arguments.tokens > 0) {
    fmt::print(
        "covers {:.2f} % of the {} tokens counted ({} different ones)\n",
        100.0 * counts.covered(tokens),
        counts.total(),
        counts.distinct()
    );
  }
  return 0;
}

}  // namespace octet::cli
