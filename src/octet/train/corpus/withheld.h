// Dialogues that a corpus must not contain, so that what is judged with them was not learnt by
// heart: whole dialogues, and their sums in any words (products beyond ten times ten). Phrases
// recur, the world of the corpus is small. Not for judging.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace octet::train {

class Withheld {
 public:
  /// A dialogue as the corpus spells them (dialogue.h).
  void add(const std::string& dialogue);
  /// Whether it was added, or has a sum of one that was.
  bool holds(const std::string& dialogue) const;

  int64_t dialogues() const { return static_cast<int64_t>(texts_.size()); }
  int64_t sums() const { return static_cast<int64_t>(sums_.size()); }

 private:
  using Sum = std::array<int64_t, 3>;  // the smaller number, the larger one, the result
  static std::set<Sum> sums_of(std::string_view dialogue);

  std::set<std::string> texts_;
  std::set<Sum> sums_;
};

/// The dialogues of a file: an array of texts, or an object with "text" on each line. Throws Error
/// with the file's name and the line.
void withhold_file(const std::string& path, Withheld& withheld);

}  // namespace octet::train
