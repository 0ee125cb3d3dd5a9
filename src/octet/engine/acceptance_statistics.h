// How well drafts were accepted: mean acceptance length, by position, histogram. Counts only;
// adding two of them pools their steps. Words as in docs/glossary.md. A step is one
// verify pass of a sequence (prompt passes are not steps). Row k of a step is *judged* when it was
// drafted, the rows before it were accepted, and the text did not end before it. Steps that drafted
// fewer rows than others, or that the text's end cut short, are censored from there on: their later
// rows count in no denominator. What a grammar forces is no draft: nobody guessed it. Invariant:
// accepted[k] <= judged[k] <= steps.
#pragma once

#include <array>
#include <cstdint>

#include "octet/speculation/cycle.h"
#include "octet/speculation/proposal.h"

namespace octet {

struct AcceptanceStatistics {
  int64_t steps = 0;                                // verify passes, plain decoding included
  int64_t published = 0;                            // tokens they published
  int64_t drafted = 0;                              // drafts verified
  int64_t accepted = 0;                             // drafts accepted and published
  int64_t forced = 0;                               // published beside drafts: certain in advance
  std::array<int64_t, kMaxDrafts> judged_rows{};    // row k + 1 of a block was reached
  std::array<int64_t, kMaxDrafts> accepted_rows{};  // and accepted
  std::array<int64_t, kMaxDrafts + 2> histogram{};  // steps by tokens published, but forced ones
  /// Steps that drafted, by their drafts, then by those that were accepted and published.
  std::array<std::array<int64_t, kMaxDrafts + 1>, kMaxDrafts + 1> drafting{};

  void add(const SequenceStep& step);
  void add(const AcceptanceStatistics& other);

  /// Tokens published per step, end effects included: published / steps. 0 without steps.
  double tokens_per_step() const;
  /// Mean acceptance length with censored steps accounted for: 1 + sum over k of joint(k), the
  /// product-limit estimate. Equals tokens_per_step() when no step was censored and no grammar
  /// forced tokens.
  double mean_acceptance_length() const;
  /// Steps that drafted: plain steps and those whose tokens a grammar forced are others.
  int64_t drafting_steps() const;
  /// Tokens that a drafting step published on average: 1 + accepted / drafting_steps(). 0 without
  /// such steps.
  double tokens_per_drafting_step() const;
  /// Probability that row k (from 0) is accepted given that it was judged; 0 when never judged.
  double conditional(int k) const;
  /// Probability that rows 0 .. k are all accepted: the product of the conditionals.
  double joint(int k) const;
  /// Rows that were ever judged.
  int rows() const;
};

}  // namespace octet
