// The text of a reply as its tokens are published: stop strings, whole characters, pieces that are
// safe to print. Control tokens other than the end are spelled out. Of thoughts and calls it knows
// no more than where stop strings do not count; reading them is not its business (reply_parser.h).
// Invariant: the pieces joined are valid UTF-8 and hold no part of a stop string and no end token.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/speculation/license.h"
#include "octet/text/stop_matcher.h"
#include "octet/text/stream_decoder.h"
#include "octet/text/tokenizer.h"

namespace octet {

class ReplyText : public StopWatch {
 public:
  /// Where stop strings count.
  struct Watch {
    int64_t unwatched = 0;     // behind so many tokens
    bool speech_only = false;  // outside of thoughts and calls
  };
  ReplyText(
      const Tokenizer& tokenizer, std::shared_ptr<const StopStrings> stop_strings, Watch watch
  );
  /// The reply goes on where the prompt ends, perhaps inside a thought. Call before the first
  /// token.
  void start(std::span<const TokenId> prompt);

  bool push(TokenId token, bool end) override;

  /// One piece a pushed token: what became printable with it. Hands them over.
  std::vector<std::string> take_pieces();

  /// The reply is over: what was held back as a possible start of a stop string, and half
  /// characters as U+FFFD.
  std::string finish();

 private:
  /// Whether the token belongs to a thought or a call, its marks included.
  bool conceals(TokenId token);
  std::string pass(TokenId token, bool end);
  std::string release();

  const Tokenizer& tokenizer_;
  std::shared_ptr<const StopStrings> stop_strings_;
  StopMatcher matcher_;
  int64_t unwatched_;  // tokens still to come
  bool speech_only_;
  bool concealed_ = false;  // inside a thought or a call
  bool call_ = false;       // of the two, the call
  StreamDecoder decoder_;
  std::string held_;      // bytes seen, not released
  int64_t released_ = 0;  // bytes
  std::vector<std::string> pieces_;
};

}  // namespace octet
