#include "octet/chat/speech_clauses.h"

#include <algorithm>
#include <array>

#include "octet/base/utf8.h"

namespace octet {
namespace {

// A voice should not wait for longer than this, whatever the text has not.
constexpr int64_t kMostCharacters = 240;

constexpr std::u32string_view kSentenceEnds = U"!?\u2026\u203C\u2047\u061F\u06D4\u0964\u0965\u1362";
constexpr std::u32string_view kWideSentenceEnds = U"\u3002\uFF01\uFF1F\uFF61\uFF0E";
constexpr std::u32string_view kClauseEnds = U",;:\u2013\u060C\u061B";
constexpr std::u32string_view kWideClauseEnds = U"\u3001\uFF0C\uFF1B\uFF1A\u2014";
constexpr std::u32string_view kClosers =
    U"\"')]}*_\u00BB\u203A\u2019\u201D\u300D\u300F\u3011\uFF09\u2033";
constexpr std::u32string_view kVowels = U"aeiouyAEIOUY";

// Written short in front of a name or a number, with a vowel, so that no rule tells them.
constexpr auto kAbbreviations = std::to_array<std::u32string_view>(
    {U"prof", U"gen", U"rev", U"no", U"fig", U"approx", U"ca", U"etc", U"usw", U"capt", U"sra"}
);

bool is_space(char32_t c) {
  return (c >= U'\t' && c <= U'\r') || c == U' ' || c == U'\u0085' || c == U'\u00A0' ||
         (c >= U'\u2000' && c <= U'\u200A') || c == U'\u2028' || c == U'\u2029' || c == U'\u202F' ||
         c == U'\u3000';
}

bool is_digit(char32_t c) {
  return c >= U'0' && c <= U'9';
}

bool is_ascii_letter(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
}

/// Of the scripts in which sentences begin with a large letter.
bool is_small_letter(char32_t c) {
  return (c >= U'a' && c <= U'z') || (c >= U'\u00DF' && c <= U'\u00FF' && c != U'\u00F7') ||
         (c >= U'\u03B1' && c <= U'\u03C9') || (c >= U'\u0430' && c <= U'\u045F');
}

bool is_in(std::u32string_view set, char32_t c) {
  return set.find(c) != std::u32string_view::npos;
}

}  // namespace

SpeechClauses::Mark SpeechClauses::mark_of(char32_t c) {
  if (c == U'.') {
    return Mark::kFullStop;
  }
  if (is_in(kSentenceEnds, c) || is_in(kWideSentenceEnds, c) || c == U'\n') {
    return Mark::kSentence;
  }
  return is_in(kClauseEnds, c) || is_in(kWideClauseEnds, c) ? Mark::kClause : Mark::kNone;
}

void SpeechClauses::push(std::string_view text, std::vector<SpeechClause>& out) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    take(step.code_point, out);
    at += static_cast<size_t>(step.length);
  }
}

void SpeechClauses::finish(std::vector<SpeechClause>& out) {
  cut(pending_.size(), true, out);
}

void SpeechClauses::take(char32_t c, std::vector<SpeechClause>& out) {
  judge(c, out);
  pending_.push_back(c);
  const Mark mark = mark_of(c);
  const bool wide = is_in(kWideSentenceEnds, c) || is_in(kWideClauseEnds, c) || c == U'\n';
  const bool goes_on = candidate_ && candidate_->end + 1 == pending_.size() && !candidate_->spaced;
  if (goes_on && (mark != Mark::kNone || is_in(kClosers, c))) {
    // "?!", "...", and what closes behind a mark belong to it.
    candidate_->end = pending_.size();
    candidate_->mark = std::max(mark, candidate_->mark);
    candidate_->wants_space = candidate_->wants_space && !wide;
  } else if (mark != Mark::kNone) {
    candidate_ = Candidate{pending_.size(), mark, !wide, false};
  } else if (is_space(c) && length_until(pending_.size()) > kMostCharacters) {
    cut(pending_.size(), false, out);
  }
}

void SpeechClauses::judge(char32_t c, std::vector<SpeechClause>& out) {
  if (!candidate_) {
    return;
  }
  Candidate& candidate = *candidate_;
  const bool adjacent = candidate.end == pending_.size();
  if (adjacent && (mark_of(c) != Mark::kNone || is_in(kClosers, c)) && c != U'\n') {
    return;  // still part of the mark
  }
  const bool full_stop = candidate.mark == Mark::kFullStop;
  if (is_space(c)) {
    if (full_stop && c != U'\n') {
      candidate.spaced = true;
      return;
    }
  } else if (adjacent && candidate.wants_space) {
    candidate_.reset();  // 3.14, 10:30, a.m.
    return;
  } else if (full_stop && (is_small_letter(c) || abbreviates(candidate.end))) {
    candidate_.reset();
    return;
  }
  if (length_until(candidate.end) >= least_) {
    cut(candidate.end, candidate.mark != Mark::kClause, out);
  }
  candidate_.reset();
}

/// Whether the word before a full stop is one that is written with it.
bool SpeechClauses::abbreviates(size_t end) const {
  size_t stop = end;
  while (stop > 0 && pending_[stop - 1] != U'.') {
    --stop;  // closers
  }
  if (stop < 1 || (stop > 1 && pending_[stop - 2] == U'.')) {
    return false;  // an ellipsis
  }
  size_t begin = stop - 1;
  while (begin > 0 && !is_space(pending_[begin - 1]) && !is_in(U"(['\"", pending_[begin - 1])) {
    --begin;
  }
  std::u32string word = pending_.substr(begin, stop - 1 - begin);
  if (word.size() <= 1 || is_in(word, U'.')) {
    return true;  // J. S. Bach; e.g.
  }
  if (std::ranges::all_of(word, is_digit)) {
    return word.size() <= 2;  // 3. Mai
  }
  if (!std::ranges::all_of(word, is_ascii_letter)) {
    return false;
  }
  const bool vowel = std::ranges::any_of(word, [](char32_t c) { return is_in(kVowels, c); });
  std::ranges::transform(word, word.begin(), [](char32_t c) { return c | U'\x20'; });
  return (!vowel && word.size() <= 4) ||
         std::ranges::find(kAbbreviations, word) != kAbbreviations.end();
}

/// Characters of what is pending up to there, without white space at the ends.
int64_t SpeechClauses::length_until(size_t end) const {
  size_t begin = 0;
  while (begin < end && is_space(pending_[begin])) {
    ++begin;
  }
  while (end > begin && is_space(pending_[end - 1])) {
    --end;
  }
  return static_cast<int64_t>(end - begin);
}

void SpeechClauses::cut(size_t end, bool sentence, std::vector<SpeechClause>& out) {
  size_t begin = 0;
  while (begin < end && is_space(pending_[begin])) {
    ++begin;
  }
  const int64_t length = length_until(end);
  if (length > 0) {
    SpeechClause clause;
    for (const char32_t c : pending_.substr(begin, static_cast<size_t>(length))) {
      append_utf8(clause.text, c);
    }
    clause.start = start_ + static_cast<int64_t>(begin);
    clause.end = clause.start + length;
    clause.sentence = sentence;
    out.push_back(std::move(clause));
  }
  pending_.erase(0, end);
  start_ += static_cast<int64_t>(end);
  candidate_.reset();
}

}  // namespace octet
