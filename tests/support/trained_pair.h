// The shipped trained pair as a user gets it, and dialogues that it was not trained on. Both lie in
// the tree, so tests need nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/text/load_tokenizer.h"
#include "support/held_out_dialogues.h"

namespace octet::test {

struct TrainedPair {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::shared_ptr<const Checkpoint> draft_checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;

  std::unique_ptr<DFlashDrafter> drafter(DrafterOptions options = {}) {
    return std::make_unique<DFlashDrafter>(
        load_drafter(draft_checkpoint, *ops, *target, std::move(options)), target->final_softcap()
    );
  }
};

inline TrainedPair load_trained_pair() {
  const std::string directory = OCTET_SOURCE_DIR "/models/bolt-tiny/";
  TrainedPair pair;
  CpuOptions options;
  options.threads = 1;  // results do not depend on it, and tests share the machine
  pair.ops = make_cpu_ops(options);
  const auto checkpoint = open_checkpoint(directory + "bolt-tiny-q8_0.gguf");
  pair.tokenizer = load_tokenizer(*checkpoint);
  pair.target = load_target(checkpoint, *pair.ops, {});
  pair.draft_checkpoint = open_checkpoint(directory + "bolt-tiny-dflash-q8_0.gguf");
  return pair;
}

/// The prompts of the first `turns` model turns of the held-out dialogues: everything before the
/// turn's own text.
inline std::vector<std::vector<TokenId>> held_out_prompts(
    const Tokenizer& tokenizer, size_t turns
) {
  constexpr std::string_view kTurn = "<|turn>model\n";
  std::vector<std::vector<TokenId>> prompts;
  for (const std::string& dialogue : held_out_dialogues()) {
    const std::string_view text = dialogue;
    for (size_t at = text.find(kTurn); at != std::string_view::npos && prompts.size() < turns;
         at = text.find(kTurn, at + 1)) {
      prompts.push_back(tokenizer.with_bos(
          tokenizer.encode(text.substr(0, at + kTurn.size()), SpecialTokens::kParse)
      ));
    }
  }
  return prompts;
}

}  // namespace octet::test
