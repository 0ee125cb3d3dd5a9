// The text of a reply as its tokens are published: stop strings, whole characters, pieces that are
// safe to print. Control tokens other than the end are spelled out; telling speech from thought is
// not its business (reply_parser.h). Invariant: the pieces joined are valid UTF-8 and hold no part
// of a stop string and no end token.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "octet/speculation/license.h"
#include "octet/text/stop_matcher.h"
#include "octet/text/stream_decoder.h"
#include "octet/text/tokenizer.h"

namespace octet {

class ReplyText : public StopWatch {
 public:
  /// Stop strings count behind the first `unwatched` tokens.
  ReplyText(
      const Tokenizer& tokenizer,
      std::shared_ptr<const StopStrings> stop_strings,
      int64_t unwatched = 0
  );

  bool push(TokenId token, bool end) override;

  /// One piece a pushed token: what became printable with it. Hands them over.
  std::vector<std::string> take_pieces();

  /// The reply is over: what was held back as a possible start of a stop string, and half
  /// characters as U+FFFD.
  std::string finish();

 private:
  std::string release();

  const Tokenizer& tokenizer_;
  StopMatcher matcher_;
  int64_t unwatched_;  // tokens still to come
  StreamDecoder decoder_;
  std::string held_;      // bytes seen, not released
  int64_t released_ = 0;  // bytes
  std::vector<std::string> pieces_;
};

}  // namespace octet
