// The JSON that replies are made of, chunks and whole, chat and plain completions: OpenAI's objects
// with what other servers add. Pure functions of what is known; when to send what is not their
// business (reply_session.h). Invariant: every optional field that a strict client may look for is
// there, null where there is nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "octet/engine/reply_stream.h"
#include "octet/serve/generation_request.h"
#include "octet/text/tokenizer.h"

namespace octet::serve {

/// What all objects of one answer share.
struct ReplyHead {
  ReplyForm form = ReplyForm::kChat;
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
};

struct ToolCallText {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text
};

/// One choice once it is complete.
struct ChoiceText {
  std::string content;
  std::string reasoning;
  bool has_reasoning = false;
  std::vector<ToolCallText> tool_calls;
  std::string finish_reason;         // OpenAI's
  std::string finish_detail;         // ours
  std::vector<EmittedToken> scored;  // with their scores, when those were asked for
  // For timings:
  ReplyReport report;
  GenerateTimes times;
  int64_t thinking_tokens = 0;
  bool thinking_closed = false;
  double first_speech_ms = 0.0;    // since submit; 0: none came
  double first_sentence_ms = 0.0;  // likewise, to the end of the first sentence
};

std::string finish_reason_of(FinishReason reason, bool tool_calls);

Json chunk(const ReplyHead& head);  // with no choices yet
Json delta_choice(const ReplyHead& head, int64_t index, Json delta);
Json whole(
    const ReplyHead& head, const Tokenizer& tokenizer, const std::vector<ChoiceText>& choices
);

Json usage_of(const std::vector<ChoiceText>& choices);
/// llama.cpp's object.
Json timings_of(const ChoiceText& choice);
/// vLLM's object; null for several choices.
Json metrics_of(const std::vector<ChoiceText>& choices);

/// Log-probabilities of tokens, in the form's own shape; null when there are none.
Json scores_of(ReplyForm form, const Tokenizer& tokenizer, const std::vector<EmittedToken>& tokens);

/// What a step did: drafts made, accepted, tokens published, and its times.
Json step_of(const SequenceStep& step, const StepTimes& times);

std::string dump(const Json& json);
std::string event_of(const Json& json);  // "data: ...\n\n"

}  // namespace octet::serve
