// The trained pair that ships with octet, on one thread: a real model with a chat vocabulary that
// every test can have.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/formats/open_checkpoint.h"
#include "octet/models/load_model.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/text/load_tokenizer.h"

namespace octet::test {

struct ShippedPair {
  std::unique_ptr<Ops> ops;
  std::unique_ptr<TargetModel> target;
  std::unique_ptr<DFlashDrafter> drafter;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Checkpoint> target_checkpoint;
  std::shared_ptr<const Checkpoint> draft_checkpoint;

  explicit ShippedPair(int64_t max_rows = 256) {
    const std::string directory = OCTET_SOURCE_DIR "/models/bolt-tiny/";
    CpuOptions cpu;
    cpu.threads = 1;
    ops = make_cpu_ops(cpu);
    target_checkpoint = open_checkpoint(directory + "bolt-tiny-q8_0.gguf");
    draft_checkpoint = open_checkpoint(directory + "bolt-tiny-dflash-q8_0.gguf");
    tokenizer = load_tokenizer(*target_checkpoint);
    TargetOptions options;
    options.max_rows = max_rows;
    target = load_target(target_checkpoint, *ops, options);
    drafter = std::make_unique<DFlashDrafter>(
        load_drafter(draft_checkpoint, *ops, *target, {}), target->final_softcap()
    );
  }

  std::vector<TokenId> encode(const std::string& text) const {
    return tokenizer->encode(text, SpecialTokens::kParse);
  }
  std::vector<TokenId> prompt(const std::string& text) const {
    return tokenizer->with_bos(encode(text));
  }
};

}  // namespace octet::test
