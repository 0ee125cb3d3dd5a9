// One dialogue in the spelling of the Bolt chat grammar, turn by turn, and the random choices that
// it is made of. Not for topics (topics.h) nor for rendering messages of users (octet/chat does
// that with a model's own template). Invariant: text comes before calls, a call is followed by its
// response in the same turn, and thoughts appear in dialogues that think and in no other.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace octet::train {

/// Random choices that depend on the seed and the dialogue's number alone.
class Choices {
 public:
  Choices(uint64_t seed, int64_t dialogue) : seed_(seed), dialogue_(dialogue) {}

  int64_t number(int64_t least, int64_t most);  // both included
  bool happens(double share);
  std::string_view of(std::span<const std::string_view> list);
  std::string_view of(std::initializer_list<std::string_view> list) {
    return of(std::span(list.begin(), list.size()));
  }
  /// What a user says: one of the phrases, with its {} filled in.
  template <typename... Values>
  std::string ask(std::initializer_list<std::string_view> phrases, const Values&... values) {
    wording_ = number(0, std::ssize(phrases) - 1);
    return fmt::format(fmt::runtime(phrases.begin()[wording_]), values...);
  }
  /// What is answered to it: the phrase that goes with the wording of the last ask. A reply thus
  /// follows from what was asked, and can be foreseen by who knows the speaker.
  template <typename... Values>
  std::string answer(std::initializer_list<std::string_view> phrases, const Values&... values) {
    return fmt::format(fmt::runtime(phrases.begin()[wording_ % std::ssize(phrases)]), values...);
  }

 private:
  double uniform();

  uint64_t seed_;
  int64_t dialogue_;
  uint32_t drawn_ = 0;
  int64_t wording_ = 0;
};

struct Argument {
  std::string_view name;
  std::variant<std::string, int64_t, bool> value;
};
using ArgumentList = std::vector<Argument>;  // in alphabetical order of the names

struct ToolParameter {
  std::string_view name;
  std::string_view description;
  std::string_view type;  // "STRING"
  std::vector<std::string_view> choices;
};
struct Tool {
  std::string_view name;
  std::string_view description;
  std::vector<ToolParameter> parameters;  // in alphabetical order
  std::vector<std::string_view> required;
};

class Dialogue {
 public:
  explicit Dialogue(bool thinks) : thinks_(thinks) {}

  bool thinks() const { return thinks_; }

  /// The first turn; left out where there is nothing to say and no thinking to ask for.
  void system(std::string_view text, std::span<const Tool> tools = {});
  void user(std::string_view text);

  // A turn of the model: open, say and call as often as wanted, close.
  void open_reply(std::string_view thought);
  void say(std::string_view text);
  void call(std::string_view name, const ArgumentList& arguments, const ArgumentList& response);
  void close_reply();
  /// All of it where nothing is called.
  void reply(std::string_view thought, std::string_view text);

  const std::string& text() const { return text_; }

 private:
  bool thinks_;
  std::string text_;
};

}  // namespace octet::train
