// How one drafter's guesses fare along a text that is known: the anchors where it would have
// drafted had it been in charge, and what came of each. The one place that counts them. Not for
// making drafts. Invariant: counts equal those of the verify cycle for the same drafts and text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "octet/base/token.h"
#include "octet/engine/acceptance_statistics.h"

namespace octet {

struct ReplayWalk {
  int64_t anchor = -1;          // position of the anchor of its present step; -1: none yet
  std::vector<TokenId> drafts;  // what it proposed there
  AcceptanceStatistics statistics;

  /// The text so far settles the step when it holds a token that the drafts did not foresee, or the
  /// one after them all. Then the step is counted and the walk stands at the next anchor.
  bool settle(std::span<const TokenId> text) {
    const auto after = text.subspan(static_cast<size_t>(anchor + 1));
    const auto accepted =
        std::mismatch(drafts.begin(), drafts.end(), after.begin(), after.end()).first -
        drafts.begin();
    if (accepted == std::ssize(after)) {
      return false;
    }
    count(static_cast<int>(accepted), static_cast<int>(accepted) + 1);
    anchor += accepted + 1;
    drafts.clear();
    return true;
  }

  /// The text is over: what it still holds is a last step, cut by the end, and perhaps plain ones.
  void close(std::span<const TokenId> text) {
    const auto last = std::ssize(text) - 1;
    while (anchor >= 0 && anchor < last) {
      if (!settle(text)) {
        const auto published = static_cast<int>(last - anchor);
        count(published, published);
        anchor = last;
      }
    }
  }

  void count(int accepted, int published) {
    SequenceStep step;
    step.drafted = static_cast<int>(drafts.size());
    step.accepted = accepted;
    step.published = published;
    statistics.add(step);
  }
};

}  // namespace octet
