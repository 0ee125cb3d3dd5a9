// The trained tiny pair, loaded once a test binary, and the dialogues that it was not trained on.
// Absent files skip the test with their path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/text/load_tokenizer.h"

namespace octet::test {

/// Where the pair lies: beside the project, or inside it. Empty when nowhere.
inline std::string trained_pair_directory() {
  for (const char* place :
       {OCTET_SOURCE_DIR "/models/bolt-tiny/", OCTET_SHARED_DIR "/models/bolt-tiny/"}) {
    if (std::filesystem::exists(std::string(place) + "bolt-tiny-bf16.gguf")) {
      return place;
    }
  }
  return {};
}

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

inline TrainedPair load_trained_pair(const std::string& directory) {
  TrainedPair pair;
  CpuOptions options;
  options.threads = 1;  // results do not depend on it, and tests share the machine
  pair.ops = make_cpu_ops(options);
  const auto checkpoint = open_checkpoint(directory + "bolt-tiny-bf16.gguf");
  pair.tokenizer = load_tokenizer(*checkpoint);
  pair.target = load_target(checkpoint, *pair.ops, {});
  pair.draft_checkpoint = open_checkpoint(directory + "bolt-tiny-dflash-bf16.gguf");
  return pair;
}

inline const std::string kHeldOutDialogues =
    OCTET_SHARED_DIR "/data/train/tiny_dialogues_heldout.json";

/// The prompts of all model turns of the first `dialogues` held-out dialogues: everything before
/// the turn's own text.
inline std::vector<std::vector<TokenId>> held_out_prompts(
    const Tokenizer& tokenizer, int64_t dialogues
) {
  constexpr std::string_view kTurn = "<|turn>model\n";
  std::vector<std::vector<TokenId>> prompts;
  simdjson::dom::parser parser;
  for (const auto element : parser.load(kHeldOutDialogues).get_array()) {
    if (dialogues-- == 0) {
      break;
    }
    const std::string_view text = element.get_string();
    for (size_t at = text.find(kTurn); at != std::string_view::npos;
         at = text.find(kTurn, at + 1)) {
      prompts.push_back(tokenizer.with_bos(
          tokenizer.encode(text.substr(0, at + kTurn.size()), SpecialTokens::kParse)
      ));
    }
  }
  return prompts;
}

}  // namespace octet::test
