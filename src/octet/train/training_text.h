// Texts to train on: one JSON object a line, {"tokens": [id, ...]} as `octet generate-data` writes
// them, with "prompt_tokens" where the first so many are given and not learned, or {"text":
// string} in the spelling of chat templates. Reads and checks; does not choose batches. Invariant:
// every id is in the vocabulary and every text has at least one token to learn; a line that is not
// so is an Error or is reported by number, never dropped in silence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/evaluate/prompt_suite.h"
#include "octet/text/tokenizer.h"

namespace octet::train {

struct TrainingText {
  std::vector<TokenId> tokens;
  int64_t first_learned = 1;     // tokens before it are given; a text's first token always is
  std::vector<bool> reply = {};  // by position, what the model says; empty: everything

  bool learns(int64_t position) const {
    return position >= first_learned && (reply.empty() || reply[static_cast<size_t>(position)]);
  }
};

struct TextRules {
  int64_t vocabulary = 0;
  int64_t most_tokens = 4096;               // of one text: longer ones are bad lines
  std::string most_tokens_by = "--length";  // what says so
  int64_t least_learned = 1;                // fewer tokens to learn make a bad line
  BadLines bad = BadLines::kRefuse;
};

struct TrainingTexts {
  std::vector<TrainingText> texts;
  std::vector<SkippedLine> skipped;

  int64_t tokens() const;
};

/// Makes first_learned 1 at least. Throws Error(kMalformed) for a text that the rules forbid.
void check_text(TrainingText& text, const TextRules& rules);

/// Reads the file, appending. `tokenizer` may be null: then lines with "text" are bad ones. Throws
/// Error naming file, line and what was expected, also when the file holds no text at all.
void read_training_texts(
    const std::string& path,
    const TextRules& rules,
    const Tokenizer* tokenizer,
    TrainingTexts& result
);

/// The texts one after another, cut into pieces of `length` tokens (a rest is left out): what a
/// target is trained on, each text with a begin token of its own. A target learns given tokens too.
std::vector<TrainingText> packed_texts(const TrainingTexts& texts, int64_t length);

/// In texts with turns, only what the model says in its own is to be learned: not the system's nor
/// the user's words, nor what tools answer. Texts that would leave nothing to learn stay as they
/// are.
void learn_replies_only(std::span<TrainingText> texts, const Tokenizer& tokenizer);

/// Where the first turn of the model begins to speak; 0: there is none.
int64_t first_reply(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

/// A number that tells lists of texts apart.
uint64_t texts_digest(std::span<const TrainingText> texts);

/// Which text is number `sample` of a run: every epoch is a permutation of `texts` numbers of its
/// own.
class SampleOrder {
 public:
  SampleOrder(int64_t texts, uint64_t seed);
  int64_t text(int64_t sample) const;
  int64_t epoch(int64_t sample) const { return sample / texts_; }

 private:
  void shuffle(int64_t epoch) const;

  int64_t texts_;
  uint64_t seed_;
  mutable int64_t shuffled_epoch_ = -1;
  mutable std::vector<int64_t> order_;  // of that epoch
};

}  // namespace octet::train
