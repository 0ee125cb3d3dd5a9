// What a reply says aloud, without what may turn out to be the beginning of a stop string. Takes
// speech alone: thoughts and calls pass beside it. Ending the reply is the engine's business.
// Invariant: no byte that is given out belongs to a stop string of the speech.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "octet/text/stop_matcher.h"

namespace octet {

class SpeechFilter {
 public:
  /// Without strings everything passes at once. Throws Error(kInvalidArgument) as StopStrings does.
  explicit SpeechFilter(const std::vector<std::string>& stops);

  /// What may be given out now.
  std::string push(std::string text);
  /// The speech is interrupted by a call or a thought, or over: what was held back and is no stop
  /// string after all. Speech behind begins anew, because a stop string cannot reach across.
  std::string finish();
  /// Index of the stop string that came; -1: none did.
  int match() const { return matcher_.match(); }

 private:
  std::shared_ptr<const StopStrings> strings_;  // null: none
  StopMatcher matcher_;
  std::string held_;
  int64_t released_ = 0;
};

}  // namespace octet
