#include "octet/train/corpus/withheld.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/formats/json_value.h"

namespace octet::train {
namespace {

constexpr std::string_view kUserTurn = "<|turn>user\n";
constexpr std::string_view kModelTurn = "<|turn>model\n";
constexpr std::string_view kTurnEnd = "<turn|>";
constexpr std::string_view kDigits = "0123456789";
// Products up to here are known by heart, as capitals are: no other sum tells them.
constexpr int64_t kTimesTable = 10;
// A line of a corpus has a few values; a list has as many as dialogues.
constexpr JsonLimits kLimits = {.depth = 4, .values = int64_t{1} << 22};

std::vector<int64_t> numbers_of(std::string_view text) {
  std::vector<int64_t> numbers;
  size_t at = text.find_first_of(kDigits);
  while (at != std::string_view::npos) {
    const size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    int64_t number = 0;
    if (std::from_chars(text.data() + at, text.data() + end, number).ec == std::errc()) {
      numbers.push_back(number);
    }
    at = text.find_first_of(kDigits, end);
  }
  return numbers;
}

/// What stands between the next `begin` from `at` and the turn's end; `at` moves behind it.
std::optional<std::string_view> next_turn(
    std::string_view dialogue, std::string_view begin, size_t& at
) {
  const size_t found = dialogue.find(begin, at);
  if (found == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t from = found + begin.size();
  at = std::min(dialogue.find(kTurnEnd, from), dialogue.size());
  return dialogue.substr(from, at - from);
}

const std::string& text_of(const JsonValue& value) {
  const std::string* text = value.object() != nullptr ? value.find_string("text") : value.string();
  if (text == nullptr) {
    throw Error(
        ErrorKind::kMalformed, "expected a list of texts, or an object with \"text\" on each line"
    );
  }
  return *text;
}

}  // namespace

/// Questions with pairs of numbers whose sum, difference or product is in the answer; with one
/// pair alone, at its end.
std::set<Withheld::Sum> Withheld::sums_of(std::string_view dialogue) {
  std::set<Sum> sums;
  size_t at = 0;
  while (const auto question = next_turn(dialogue, kUserTurn, at)) {
    size_t after = at;
    const std::vector<int64_t> asked = numbers_of(*question);
    const auto answer = next_turn(dialogue, kModelTurn, after);
    const std::vector<int64_t> said = answer ? numbers_of(*answer) : std::vector<int64_t>();
    if (asked.size() % 2 != 0 || said.empty()) {
      continue;
    }
    const std::span<const int64_t> results =
        asked.size() == 2 ? std::span(said).last(1) : std::span(said);
    for (size_t pair = 0; pair < asked.size(); pair += 2) {
      const auto [low, high] = std::minmax(asked[pair], asked[pair + 1]);
      for (const int64_t result : results) {
        const bool product = result == low * high && high > kTimesTable;
        if (result == low + high || result == high - low || product) {
          sums.insert({low, high, result});
        }
      }
    }
  }
  return sums;
}

void Withheld::add(const std::string& dialogue) {
  texts_.insert(dialogue);
  sums_.merge(sums_of(dialogue));
}

bool Withheld::holds(const std::string& dialogue) const {
  if (texts_.contains(dialogue)) {
    return true;
  }
  const std::set<Sum> sums = sums_of(dialogue);
  return std::any_of(sums.begin(), sums.end(), [&](const Sum& sum) { return sums_.contains(sum); });
}

void withhold_file(const std::string& path, Withheld& withheld) {
  const std::string content = read_whole_file(path);
  const auto parse = [&](std::string_view text) {
    return parse_json(std::as_bytes(std::span(text)), kLimits);
  };
  int64_t line = 1;
  try {
    if (content.starts_with('[')) {
      const JsonValue list = parse(content);
      for (const JsonValue& dialogue : *list.array()) {
        withheld.add(text_of(dialogue));
      }
      return;
    }
    for (size_t at = 0; at < content.size(); ++line) {
      const size_t end = std::min(content.find('\n', at), content.size());
      if (end > at) {
        const JsonValue dialogue = parse(std::string_view(content).substr(at, end - at));
        withheld.add(text_of(dialogue));
      }
      at = end + 1;
    }
  } catch (Error& error) {
    error.add_context(fmt::format("{}, line {}", path, line));
    throw;
  }
}

}  // namespace octet::train
