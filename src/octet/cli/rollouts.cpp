#include "octet/cli/rollouts.h"

#include <utility>

#include <fmt/format.h>

#include "octet/cli/prompt_file.h"
#include "octet/engine/generator.h"
#include "octet/speculation/drafters/drafter_list.h"

namespace octet::cli {

std::vector<std::vector<TokenId>> write_rollouts(
    const CalibrationText& text, TargetModel& target, const Tokenizer& tokenizer, Progress& progress
) {
  const std::vector<Prompt> prompts =
      text.prompts_file.empty() ? built_in_prompts() : read_prompts(text.prompts_file, 0);
  const auto none = new_drafter("none", target, {});
  Generator generator(target, *none, tokenizer, {});
  std::vector<std::vector<TokenId>> texts;
  for (int64_t i = 0; i < text.rollouts; ++i) {
    progress.show(fmt::format("Writing rollout {} of {}", i + 1, text.rollouts));
    const Prompt& prompt = prompts[static_cast<size_t>(i) % prompts.size()];
    GenerateRequest request;
    request.prompt = encode_prompt(tokenizer, prompt);
    request.sampling.temperature = 1.0F;
    request.sampling.seed = text.seed + static_cast<uint64_t>(i);
    request.max_tokens = text.rollout_tokens;
    const GenerateResult reply = generator.generate(request);
    std::vector<TokenId> tokens(request.prompt.begin() + 1, request.prompt.end());
    tokens.insert(tokens.end(), reply.tokens.begin(), reply.tokens.end());
    texts.push_back(std::move(tokens));
  }
  return texts;
}

}  // namespace octet::cli
