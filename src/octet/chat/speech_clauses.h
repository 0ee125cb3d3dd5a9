// Cuts speech, as it comes, into clauses that a voice can begin to speak: at the ends of sentences
// and clauses, in any script, once there is enough to say. Rules, no dictionary of a language;
// where a full stop may be an abbreviation's or a number's the clause goes on, which costs time,
// never sense. Invariants: clauses come in order, and between them is only white space; they do not
// depend on how the speech was cut into pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

/// Offsets are characters (code points) from the start of the speech; no white space at either end.
struct SpeechClause {
  std::string text;
  int64_t start = 0;
  int64_t end = 0;
  bool sentence = false;  // ends a sentence, or the speech
};

class SpeechClauses {
 public:
  static constexpr int64_t kUsualLeast = 12;  // characters of a clause that is not the last

  explicit SpeechClauses(int64_t least_characters = kUsualLeast) : least_(least_characters) {}

  /// Whole characters. Appends the clauses that are certain now.
  void push(std::string_view text, std::vector<SpeechClause>& out);
  /// The speech ends, or something else comes between: the rest is a clause. Offsets go on.
  void finish(std::vector<SpeechClause>& out);

 private:
  enum class Mark : uint8_t { kNone, kClause, kSentence, kFullStop };
  /// A place that may turn out to be the end of a clause.
  struct Candidate {
    size_t end = 0;  // in pending_
    Mark mark = Mark::kNone;
    bool wants_space = false;
    bool spaced = false;  // a full stop's: white space came, the next letter decides
  };

  static Mark mark_of(char32_t c);
  void take(char32_t c, std::vector<SpeechClause>& out);
  /// What the next character says about the candidate.
  void judge(char32_t c, std::vector<SpeechClause>& out);
  bool abbreviates(size_t full_stop) const;
  int64_t length_until(size_t end) const;
  void cut(size_t end, bool sentence, std::vector<SpeechClause>& out);

  int64_t least_;
  std::u32string pending_;
  int64_t start_ = 0;  // of what is pending
  std::optional<Candidate> candidate_;
};

}  // namespace octet
