// The 300 dialogues that the shipped pair was not trained on, as flat text: "<|turn>role\ntext
// <turn|>\n" for each turn. For every test that measures the pair or holds something against what
// it was trained for. Invariant: their order; figures are those of the first so many.
#pragma once

#include <string>
#include <vector>

#include "octet/formats/json_value.h"
#include "support/golden_files.h"

namespace octet::test {

inline std::vector<std::string> texts_of(const std::string& path) {
  const JsonValue json = read_json(path);
  std::vector<std::string> texts;
  for (const JsonValue& text : *json.array()) {
    texts.push_back(*text.string());
  }
  return texts;
}

inline std::vector<std::string> held_out_dialogues() {
  return texts_of(OCTET_SOURCE_DIR "/tests/golden/held_out_dialogues.json");
}

/// Dialogues of the same form that end with a sum: its additions and subtractions were not trained
/// on in any words, its products up to ten times ten not in these dialogues.
inline std::vector<std::string> held_out_sums() {
  return texts_of(OCTET_SOURCE_DIR "/tests/golden/held_out_sums.json");
}

}  // namespace octet::test
