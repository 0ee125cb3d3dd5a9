// A reply as a list of items in the order in which they came: thoughts, speech, tool calls. What
// every form of answer is made of, whole or as a stream of pieces. Not for JSON (reply_writer.h).
// Invariant: pieces, joined by item, are the items; an item is complete once the next one begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "octet/chat/speech_clauses.h"
#include "octet/engine/reply_stream.h"

namespace octet::serve {

enum class ItemKind : uint8_t { kThought, kSpeech, kToolCall };

struct ReplyItem {
  ItemKind kind = ItemKind::kSpeech;
  std::string text;      // of a call: its arguments, JSON text
  std::string call_id;   // of a call
  std::string name;      // of a call: the tool's
  int64_t call = -1;     // of a call: its index among the calls
  bool complete = true;  // of a call: the model finished it
};

/// The next part of an item; the first one of an item may be empty.
struct ReplyPiece {
  size_t item = 0;
  std::string text;
  /// Of speech, when steps are told: the text again, and where each part is from (true: drafted).
  std::vector<std::pair<std::string, bool>> origins;
  std::vector<SpeechClause> clauses;  // of speech: those that became certain with it, when told
};

/// One choice: so far, and once it is complete.
struct ChoiceText {
  std::vector<ReplyItem> items;
  std::string finish_reason;         // OpenAI's
  std::string finish_detail;         // ours
  std::string stop_string;           // the one that ended it; empty: none did
  std::vector<EmittedToken> scored;  // with their scores, when those were asked for
  // For timings:
  ReplyReport report;
  GenerateTimes times;
  int64_t thinking_tokens = 0;
  bool thinking_closed = false;
  double first_speech_ms = 0.0;    // since submit; 0: none came
  double first_sentence_ms = 0.0;  // likewise, to the end of the first sentence

  bool has(ItemKind kind) const;
  /// Texts of all items of a kind, joined.
  std::string joined(ItemKind kind) const;
};

}  // namespace octet::serve
