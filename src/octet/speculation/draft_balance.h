// What blocks of drafts have yielded of late, older ones exponentially forgotten: in the lengths
// that were verified, and in every fixed length, had it been the one. So a length that would pay is
// seen while another one is tried. Tokens and numbers of blocks are kept instead of times: a cost
// that turns out to be another is another for all of them.
#pragma once

#include <array>

#include "octet/speculation/proposal.h"
#include "octet/speculation/step_costs.h"

namespace octet {

/// Tokens that a block gives when so many of its drafts are verified, the target's own included.
using TokensByLength = std::array<double, kMaxDrafts + 1>;

class DraftBalance {
 public:
  /// A block whose `rows` rows gave `tokens` tokens.
  void add(double tokens, int rows, const TokensByLength& by_length);

  /// Blocks that are remembered.
  double blocks() const { return blocks_; }

  /// What is believed besides what was seen.
  struct Belief {
    /// The time of so many plain steps is thought to have been spent on drafting, at 1.4 times the
    /// speed of plain decoding: one bad block at the start proves nothing, a few do.
    double trust_steps = 0.0;
    /// So many standard errors are added to the tokens: blocks that scatter prove less.
    double standard_errors = 0.0;
  };

  /// Milliseconds a token at today's costs, of the lengths that were verified or of the best fixed
  /// one up to `max_drafts`, whichever is less; infinite without blocks and trust.
  double ms_per_token(const StepCosts& costs, int max_drafts, const Belief& belief) const;

 private:
  /// Tokens of all blocks.
  struct Yield {
    double sum = 0.0;
    double squares = 0.0;
    void add(double tokens);
    /// The sum's, for `blocks` blocks.
    double standard_error(double blocks) const;
  };

  double blocks_ = 0.0;
  Yield verified_;                                       // in the lengths that were verified
  std::array<double, kMaxDrafts + 2> blocks_by_rows_{};  // of them; [0] unused
  std::array<Yield, kMaxDrafts + 1> by_length_{};
};

}  // namespace octet
