// Text as a drafter lives it, recorded once and played as often as needed: tokens with the features
// that the target had at them, and the drafter drafting where it would, had the text been the
// target's own. Not for measuring drafts (engine/acceptance_replay.h). Invariant: the target runs
// once, in the constructor; features take taps * hidden floats a token.
#pragma once

#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/models/draft_model.h"
#include "octet/models/target_model.h"
#include "octet/quantize/text_chunks.h"

namespace octet {

class DraftText {
 public:
  /// `chunks` as cut_chunks makes them; `taps` of the drafter.
  DraftText(
      TargetModel& target,
      std::span<const int> taps,
      std::span<const std::vector<TokenId>> chunks,
      const OnChunk& on_chunk
  );

  /// Every token is injected once; a block is drafted at the first, and then behind the tokens that
  /// the last one foresaw, as when its drafts are verified.
  void play(DraftModel& drafter) const;

  int64_t tokens() const;

 private:
  struct Chunk {
    std::vector<TokenId> tokens;
    std::vector<float> features;  // [tokens, taps * hidden]
  };

  void play_chunk(DraftModel& drafter, const Chunk& chunk) const;

  int64_t width_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace octet
