// Parts of answers that all forms share: usage and times as other servers tell them, scores, what a
// step did. Pure functions of what is known; whole answers and streams are made in the writers
// (reply_writer.h). Invariant: every optional field that a strict client may look for is there,
// null where there is nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/serve/generation_request.h"
#include "octet/serve/reply_items.h"
#include "octet/text/stream_decoder.h"
#include "octet/text/tokenizer.h"

namespace octet::serve {

/// OpenAI's.
std::string finish_reason_of(FinishReason reason, bool tool_calls);

/// Sums over choices, OpenAI's object. `choices_each`: to each prompt, which counts once.
Json usage_of(const std::vector<ChoiceText>& choices, int64_t choices_each = 1);
/// llama.cpp's object.
Json timings_of(const ChoiceText& choice);
/// vLLM's object; null for several choices.
Json metrics_of(const std::vector<ChoiceText>& choices);

/// Where in the text a token begins: whole characters before it.
class TextOffset {
 public:
  int64_t characters() const { return characters_; }
  /// Past a token that spells `bytes`.
  void advance(std::string_view bytes);

 private:
  StreamDecoder decoder_;
  int64_t characters_ = 0;
};

/// Log-probabilities of tokens, in the form's own shape; null when there are none. `offset`: of the
/// choice's text so far.
Json scores_of(
    ReplyForm form,
    const Tokenizer& tokenizer,
    std::span<const EmittedToken> tokens,
    TextOffset& offset
);

/// What a step did: drafts made, accepted, tokens published, and its times.
Json step_of(const ReplyTokens& tokens);

std::string dump(const Json& json);
std::string event_of(const Json& json);                            // "data: ...\n\n"
std::string named_event(std::string_view name, const Json& json);  // "event: ...\ndata: ...\n\n"

}  // namespace octet::serve
