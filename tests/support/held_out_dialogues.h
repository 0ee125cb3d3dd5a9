// The 300 dialogues that the shipped pair was not trained on, as flat text: "<|turn>role\ntext
// <turn|>\n" for each turn. For every test that measures the pair or holds something against what
// it was trained for. Invariant: their order; figures are those of the first so many.
#pragma once

#include <string>
#include <vector>

#include "octet/formats/json_value.h"
#include "support/golden_files.h"

namespace octet::test {

inline std::vector<std::string> held_out_dialogues() {
  const JsonValue json = read_json(OCTET_SOURCE_DIR "/tests/golden/held_out_dialogues.json");
  std::vector<std::string> dialogues;
  for (const JsonValue& dialogue : *json.array()) {
    dialogues.push_back(*dialogue.string());
  }
  return dialogues;
}

}  // namespace octet::test
