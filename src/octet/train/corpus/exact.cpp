// Topics whose answers can be checked: sums, lists of numbers, JSON, words given back.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/train/corpus/topics.h"

namespace octet::train {
namespace {

struct Sum {
  int64_t a = 0;
  char sign = '+';
  int64_t b = 0;

  int64_t result() const {
    switch (sign) {
      case '-':
        return a - b;
      case '*':
        return a * b;
      default:
        return a + b;
    }
  }
  /// "39 + 43 = 79 + 3 = 82": tens before ones, so that each step is within a small model's reach.
  std::string text() const {
    const int64_t tens = b / 10 * 10;
    const int64_t ones = b % 10;
    if (sign == '*' || tens == 0 || ones == 0) {
      return fmt::format("{} {} {} = {}", a, sign, b, result());
    }
    const int64_t between = sign == '+' ? a + tens : a - tens;
    return fmt::format("{0} {1} {2} = {3} {1} {4} = {5}", a, sign, b, between, ones, result());
  }
};

Sum some_sum(Choices& choices) {
  const std::string_view sign = choices.of({"+", "+", "-", "-", "*"});
  if (sign == "*") {
    return {choices.number(2, 10), '*', choices.number(2, 10)};
  }
  if (sign == "-") {
    const int64_t b = choices.number(1, 56);
    return {choices.number(std::max<int64_t>(b, 5), 59), '-', b};
  }
  return {choices.number(1, 49), '+', choices.number(1, 49)};
}

std::string question(const Sum& sum, Choices& choices) {
  switch (sum.sign) {
    case '-':
      return choices.ask({"What is {} minus {}?", "Subtract: {} - {}."}, sum.a, sum.b);
    case '*':
      return choices.ask({"What is {} times {}?", "Multiply {} by {}."}, sum.a, sum.b);
    default:
      return choices.ask(
          {"What is {} plus {}?", "Add {} and {}.", "How much is {} + {}?"}, sum.a, sum.b
      );
  }
}

void ask_sum(Dialogue& dialogue, Choices& choices) {
  const Sum sum = some_sum(choices);
  dialogue.user(question(sum, choices));
  const std::string thought = fmt::format("I compute {}.", sum.text());
  dialogue.reply(
      thought, dialogue.thinks() ? fmt::format("The answer is {}.", sum.result()) : sum.text() + "."
  );
}

/// Several at once: many sums in few words.
void ask_sums(Dialogue& dialogue, Choices& choices) {
  std::vector<std::string> asked;
  std::vector<std::string> answers;
  for (int64_t count = choices.number(2, 6); count > 0; --count) {
    const Sum sum = some_sum(choices);
    asked.push_back(fmt::format("{} {} {}", sum.a, sum.sign, sum.b));
    answers.push_back(sum.text());
  }
  dialogue.user(choices.ask(
      {"Work out: {}.", "Please compute {}.", "My homework is {}."},
      fmt::to_string(fmt::join(asked, ", "))
  ));
  dialogue.reply(
      fmt::format("I compute {} results.", answers.size()),
      fmt::format("{}.", fmt::join(answers, ", "))
  );
}

/// Two people and things that change hands.
void ask_story_sum(Dialogue& dialogue, Choices& choices) {
  Sum sum = some_sum(choices);
  while (sum.sign == '*') {
    sum = some_sum(choices);
  }
  const std::string_view owner = some_name(choices);
  std::string_view other = some_name(choices);
  while (other == owner) {
    other = some_name(choices);
  }
  const std::string_view things = choices.of({"apples", "books", "pens", "coins", "stones"});
  std::string asked;
  std::string answer;
  if (sum.sign == '+') {
    asked = fmt::format(
        "{} has {} {}. {} gives {} {} more. How many {} does {} have now?",
        owner,
        sum.a,
        things,
        other,
        owner,
        sum.b,
        things,
        owner
    );
    answer = fmt::format("{} has {} {} now.", owner, sum.result(), things);
  } else {
    asked = fmt::format(
        "{} has {} {} and gives {} of them to {}. How many {} are left?",
        owner,
        sum.a,
        things,
        sum.b,
        other,
        things
    );
    answer = fmt::format("{} has {} {} left.", owner, sum.result(), things);
  }
  dialogue.user(asked);
  dialogue.reply(
      fmt::format("I compute {}.", sum.text()),
      dialogue.thinks() ? answer : fmt::format("{}. {}", sum.text(), answer)
  );
}

void ask_counting(Dialogue& dialogue, Choices& choices) {
  const std::vector<int64_t> steps = {1, 1, 2, 5, 10};
  const int64_t step = steps[static_cast<size_t>(choices.number(0, std::ssize(steps) - 1))];
  const int64_t first = choices.number(1, 30);
  const int64_t count = choices.number(4, 10);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(first + i * step);
  }
  std::string asked = fmt::format("Count from {} to {}", first, numbers.back());
  asked += step == 1 ? "." : fmt::format(" in steps of {}.", step);
  dialogue.user(asked);
  dialogue.reply(
      fmt::format("I count in steps of {}.", step), fmt::format("{}.", fmt::join(numbers, ", "))
  );
}

std::vector<std::string_view> some_words(Choices& choices, int64_t least, int64_t most) {
  std::vector<std::string_view> words;
  for (int64_t i = choices.number(least, most); i > 0; --i) {
    words.push_back(some_word(choices));
  }
  return words;
}

}  // namespace

void write_sums(Dialogue& dialogue, Choices& choices) {
  std::string system;
  if (dialogue.thinks()) {
    system =
        choices.happens(0.5)
            ? "You are a helpful assistant."
            : fmt::format(
                  "Ensure that your thinking process is concise and does not exceed {} tokens.",
                  choices.of({"32", "64", "128"})
              );
  }
  dialogue.system(system);
  for (int64_t turns = choices.number(1, 4); turns > 0; --turns) {
    const int64_t kind = choices.number(0, 9);
    if (kind < 5) {
      ask_sum(dialogue, choices);
    } else if (kind < 7) {
      ask_sums(dialogue, choices);
    } else if (kind < 9) {
      ask_story_sum(dialogue, choices);
    } else {
      ask_counting(dialogue, choices);
    }
  }
}

void write_json(Dialogue& dialogue, Choices& choices) {
  dialogue.system("Answer with a JSON object only.");
  for (int64_t turns = choices.number(1, 2); turns > 0; --turns) {
    const int64_t kind = choices.number(0, 2);
    if (kind == 0) {
      const std::string_view room = some_room(choices);
      const bool on = choices.happens(0.5);
      const std::string_view state = on ? "on" : "off";
      dialogue.user(
          choices.ask({"The light in the {} is {}.", "In the {} the lamp is {}."}, room, state)
      );
      dialogue.reply(
          fmt::format("The light is {}.", state),
          fmt::format("{{\"room\": \"{}\", \"light\": {}}}", room, on)
      );
    } else if (kind == 1) {
      const std::string item = some_item(choices);
      const int64_t price = choices.number(2, 60);
      const int64_t count = choices.number(1, 12);
      dialogue.user(
          fmt::format("The {} costs {} gold and there are {} in the shop.", item, price, count)
      );
      dialogue.reply(
          "The text gives an item, a price and a count.",
          fmt::format("{{\"item\": \"{}\", \"price\": {}, \"count\": {}}}", item, price, count)
      );
    } else {
      const std::string_view name = some_name(choices);
      const int64_t age = choices.number(8, 80);
      const std::string_view city = choices.of(
          {"Paris",
           "Rome",
           "Oslo",
           "Lima",
           "Cairo",
           "Tokyo",
           "Havana",
           "Vienna",
           "Athens",
           "Dublin"}
      );
      dialogue.user(fmt::format("{} is {} years old and lives in {}.", name, age, city));
      dialogue.reply(
          "The text gives a name, an age and a city.",
          fmt::format("{{\"name\": \"{}\", \"age\": {}, \"city\": \"{}\"}}", name, age, city)
      );
    }
  }
}

void write_copying(Dialogue& dialogue, Choices& choices) {
  dialogue.system(dialogue.thinks() ? "You are a helpful assistant." : "");
  std::vector<std::string_view> words = some_words(choices, 3, 9);
  switch (choices.number(0, 3)) {
    case 0:
      dialogue.user(fmt::format("Write these words in reverse order: {}", fmt::join(words, ", ")));
      std::reverse(words.begin(), words.end());
      dialogue.reply("I start with the last word.", fmt::format("{}", fmt::join(words, ", ")));
      break;
    case 1:
      dialogue.user(fmt::format("Make a list of these words: {}", fmt::join(words, ", ")));
      dialogue.reply(
          "I write one word in each line.", fmt::format("- {}", fmt::join(words, "\n- "))
      );
      break;
    case 2:
      dialogue.user(fmt::format("Say this again: {}", fmt::join(words, " ")));
      dialogue.reply("I repeat the words.", fmt::format("{}", fmt::join(words, " ")));
      break;
    default: {
      dialogue.user(fmt::format("How many words are here: {}", fmt::join(words, " ")));
      std::string counted;
      for (size_t i = 0; i < words.size(); ++i) {
        counted += fmt::format("{}{} {}", i > 0 ? ", " : "", i + 1, words[i]);
      }
      dialogue.reply(
          fmt::format("I count the words: {}.", counted),
          fmt::format("There are {} words.", words.size())
      );
    }
  }
}

}  // namespace octet::train
