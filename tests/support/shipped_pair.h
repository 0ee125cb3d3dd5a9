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

  explicit ShippedPair(int64_t max_rows = 256) {
    const std::string directory = OCTET_SOURCE_DIR "/models/bolt-tiny/";
    CpuOptions cpu;
    cpu.threads = 1;
    ops = make_cpu_ops(cpu);
    const auto checkpoint = open_checkpoint(directory + "bolt-tiny-q8_0.gguf");
    tokenizer = load_tokenizer(*checkpoint);
    TargetOptions options;
    options.max_rows = max_rows;
    target = load_target(checkpoint, *ops, options);
    drafter = std::make_unique<DFlashDrafter>(
        load_drafter(open_checkpoint(directory + "bolt-tiny-dflash-q8_0.gguf"), *ops, *target, {}),
        target->final_softcap()
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
