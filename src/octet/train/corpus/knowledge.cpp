// Topics of what the model knows and makes up: questions, short code, stories.
#include <array>
#include <string>

#include <fmt/format.h>

#include "octet/train/corpus/topics.h"

namespace octet::train {
namespace {

using List = std::string_view;

struct Capital {
  List country;
  List city;
};
constexpr std::array<Capital, 18> kCapitals = {{
    {"Austria", "Vienna"},
    {"Cuba", "Havana"},
    {"Egypt", "Cairo"},
    {"Finland", "Helsinki"},
    {"France", "Paris"},
    {"Germany", "Berlin"},
    {"Greece", "Athens"},
    {"Ireland", "Dublin"},
    {"Italy", "Rome"},
    {"Japan", "Tokyo"},
    {"Kenya", "Nairobi"},
    {"Norway", "Oslo"},
    {"Peru", "Lima"},
    {"Poland", "Warsaw"},
    {"Portugal", "Lisbon"},
    {"Spain", "Madrid"},
    {"Sweden", "Stockholm"},
    {"Hungary", "Budapest"},
}};

struct Animal {
  List name;
  List kind;
  List home;
  List food;
  List sound;
};
constexpr std::array<Animal, 12> kAnimals = {{
    {"wolf", "an animal", "forests", "meat", "howls"},
    {"dog", "an animal", "houses with people", "bones and meat", "barks"},
    {"frog", "an animal", "ponds", "insects", "croaks"},
    {"lion", "an animal", "the grasslands of Africa", "meat", "roars"},
    {"owl", "a bird", "forests", "mice", "hoots"},
    {"bear", "an animal", "forests and mountains", "berries and fish", "growls"},
    {"cow", "an animal", "farms", "grass", "moos"},
    {"duck", "an animal", "lakes and ponds", "water plants", "quacks"},
    {"cat", "an animal", "houses with people", "fish and mice", "meows"},
    {"bee", "an animal", "hives", "nectar", "buzzes"},
    {"horse", "an animal", "farms", "grass and hay", "neighs"},
    {"sheep", "an animal", "meadows", "grass", "bleats"},
}};

struct Plant {
  List name;
  List kind;
  List color;
  List place;
};
constexpr std::array<Plant, 8> kPlants = {{
    {"banana", "fruit", "yellow", "on large plants in warm countries"},
    {"potato", "vegetable", "brown", "under the ground"},
    {"carrot", "vegetable", "orange", "under the ground"},
    {"tomato", "fruit", "red", "on small plants"},
    {"grape", "fruit", "green or purple", "on vines"},
    {"apple", "fruit", "red, green or yellow", "on trees"},
    {"cherry", "fruit", "red", "on trees"},
    {"lemon", "fruit", "yellow", "on trees in warm countries"},
}};

struct Fact {
  List thing;  // as it is asked for
  List text;
};
constexpr std::array<Fact, 14> kFacts = {{
    {"a battery",
     "A battery stores energy in chemical form and gives it back as electric current."},
    {"a cache",
     "A cache keeps results that are needed again, so that they do not have to be computed twice."},
    {"a compiler", "A compiler translates source code into machine code that a computer can run."},
    {"a drafter",
     "A drafter is a small model that proposes the next tokens. The target model then accepts the "
     "longest prefix that it agrees with."},
    {"a river",
     "A river is a stream of fresh water that flows from hills or mountains down to a lake or the "
     "sea."},
    {"a sliding window",
     "A sliding window limits attention to the most recent tokens. Older tokens fall out of the "
     "window, so memory stays small."},
    {"a token",
     "A token is a small piece of text, such as a word or a part of a word. Language models read "
     "and "
     "write text as a row of tokens."},
    {"a volcano",
     "A volcano is a mountain with an opening where hot rock and gas come out of the earth."},
    {"an embedding",
     "An embedding is a list of numbers that stands for a token. Similar tokens have similar "
     "numbers."},
    {"attention",
     "Attention lets a model look back at earlier tokens and decide which of them matter for the "
     "next one."},
    {"bread", "Bread is baked from flour, water, salt and yeast. The yeast makes the dough rise."},
    {"quantization",
     "Quantization stores the weights of a model with fewer bits. The model becomes smaller and "
     "faster, and only a little less exact."},
    {"rain",
     "Rain is water that falls from clouds. It forms when small drops join and become too heavy to "
     "stay in the air."},
    {"speculative decoding",
     "Speculative decoding lets a small model guess several tokens, and a large model checks all "
     "of "
     "them in one pass. The output stays the same, but it arrives faster."},
}};

template <typename T, size_t count>
const T& one_of(const std::array<T, count>& list, Choices& choices) {
  return list[static_cast<size_t>(choices.number(0, static_cast<int64_t>(count) - 1))];
}

void ask_capital(Dialogue& dialogue, Choices& choices) {
  const Capital& capital = one_of(kCapitals, choices);
  dialogue.user(choices.ask(
      {"What is the capital of {}?",
       "Which city is the capital of {}?",
       "Tell me the capital of {}."},
      capital.country
  ));
  dialogue.reply(
      fmt::format("The user asks for the capital of {}. It is {}.", capital.country, capital.city),
      fmt::format("The capital of {} is {}.", capital.country, capital.city)
  );
}

void ask_animal(Dialogue& dialogue, Choices& choices) {
  const Animal& animal = one_of(kAnimals, choices);
  if (choices.happens(0.4)) {
    const Animal& other = one_of(kAnimals, choices);
    const bool first = choices.happens(0.5);
    dialogue.user(fmt::format(
        "Which animal {}, the {} or the {}?",
        animal.sound,
        first ? animal.name : other.name,
        first ? other.name : animal.name
    ));
    dialogue.reply(
        fmt::format("The {} {}.", animal.name, animal.sound),
        fmt::format("The {} {}.", animal.name, animal.sound)
    );
    return;
  }
  dialogue.user(choices.ask(
      {"Describe a {}.", "Tell me about the {}.", "What do you know about the {}?"}, animal.name
  ));
  dialogue.reply(
      fmt::format(
          "I describe where the {} lives, what it eats and which sound it makes.", animal.name
      ),
      fmt::format(
          "The {} is {} that lives in {}. It eats {}, and it {}.",
          animal.name,
          animal.kind,
          animal.home,
          animal.food,
          animal.sound
      )
  );
}

void ask_plant(Dialogue& dialogue, Choices& choices) {
  const Plant& plant = one_of(kPlants, choices);
  dialogue.user(
      choices.ask({"What is a {}?", "Where do {}s grow?", "Explain what a {} is."}, plant.name)
  );
  dialogue.reply(
      fmt::format("A {} is a {}.", plant.name, plant.kind),
      fmt::format(
          "A {} is a {}. It is {} and grows {}.", plant.name, plant.kind, plant.color, plant.place
      )
  );
}

void ask_fact(Dialogue& dialogue, Choices& choices) {
  const Fact& fact = one_of(kFacts, choices);
  dialogue.user(choices.ask(
      {"What is {}?", "Explain {}.", "Explain {} in two sentences.", "Can you tell me what {} is?"},
      fact.thing
  ));
  dialogue.reply(
      fmt::format("The user asks about {}. I explain it in simple words.", fact.thing), fact.text
  );
}

/// A short function; {0} and {1} are names of numbers, {2} that of a list.
struct Function {
  List purpose;
  List python;
  List cpp;  // empty: asked for in Python alone
};
constexpr std::array<Function, 10> kFunctions = {{
    {"adds two numbers",
     "def add({0}, {1}):\n    return {0} + {1}",
     "int add(int {0}, int {1}) {{\n    return {0} + {1};\n}}"},
    {"multiplies two numbers",
     "def multiply({0}, {1}):\n    return {0} * {1}",
     "int multiply(int {0}, int {1}) {{\n    return {0} * {1};\n}}"},
    {"returns the larger of two numbers",
     "def larger({0}, {1}):\n    if {0} > {1}:\n        return {0}\n    return {1}",
     "int larger(int {0}, int {1}) {{\n    if ({0} > {1}) {{\n        return {0};\n    }}\n    "
     "return "
     "{1};\n}}"},
    {"checks if a number is even",
     "def is_even({0}):\n    return {0} % 2 == 0",
     "bool is_even(int {0}) {{\n    return {0} % 2 == 0;\n}}"},
    {"computes the factorial of a number",
     "def factorial({0}):\n    result = 1\n    for i in range(2, {0} + 1):\n        result *= i\n  "
     "  "
     "return result",
     "long factorial(int {0}) {{\n    long result = 1;\n    for (int i = 2; i <= {0}; ++i) {{\n    "
     "    "
     "result *= i;\n    }}\n    return result;\n}}"},
    {"computes Fibonacci numbers",
     "def fibonacci({0}):\n    first, second = 0, 1\n    for i in range({0}):\n        first, "
     "second = "
     "second, first + second\n    return first",
     ""},
    {"sums a list",
     "def total({2}):\n    result = 0\n    for item in {2}:\n        result += item\n    return "
     "result",
     "int total(const std::vector<int>& {2}) {{\n    int result = 0;\n    for (int item : {2}) "
     "{{\n   "
     "     result += item;\n    }}\n    return result;\n}}"},
    {"finds the largest element of a list",
     "def largest({2}):\n    best = {2}[0]\n    for item in {2}:\n        if item > best:\n        "
     "  "
     "  best = item\n    return best",
     ""},
    {"reverses a list",
     "def reverse({2}):\n    result = []\n    for item in {2}:\n        result.insert(0, item)\n   "
     " "
     "return result",
     ""},
    {"greets a person by name", "def greet(name):\n    print(\"Hello, \" + name + \"!\")", ""},
}};

}  // namespace

void write_questions(Dialogue& dialogue, Choices& choices) {
  dialogue.system(choices.of(
      {"You are a helpful assistant.", "You are a friendly teacher.", "Answer in short sentences."}
  ));
  for (int64_t turns = choices.number(1, 3); turns > 0; --turns) {
    switch (choices.number(0, 3)) {
      case 0:
        ask_capital(dialogue, choices);
        break;
      case 1:
        ask_animal(dialogue, choices);
        break;
      case 2:
        ask_plant(dialogue, choices);
        break;
      default:
        ask_fact(dialogue, choices);
    }
  }
}

void write_code(Dialogue& dialogue, Choices& choices) {
  dialogue.system(dialogue.thinks() || choices.happens(0.5) ? "You are a coding assistant." : "");
  const Function& function = one_of(kFunctions, choices);
  const bool cpp = !function.cpp.empty() && choices.happens(0.5);
  const std::string_view language = cpp ? "C++" : "Python";
  dialogue.user(choices.ask(
      {"Write a {} function that {}.",
       "Give me a {} function that {}.",
       "I need a {} function that {}."},
      language,
      function.purpose
  ));
  const std::string body = fmt::format(
      fmt::runtime(cpp ? function.cpp : function.python),
      choices.answer({"a", "x", "left"}),
      choices.answer({"b", "y", "right"}),
      choices.answer({"values", "items", "numbers"})
  );
  const std::string lead = choices.answer(
      {"Here is a function that {}:", "This function {}:", "A function that {}:"}, function.purpose
  );
  dialogue.reply(
      fmt::format("The user needs a {} function that {}.", language, function.purpose),
      fmt::format("{}\n```{}\n{}\n```", lead, cpp ? "cpp" : "python", body)
  );
  if (choices.happens(0.4)) {
    dialogue.user(choices.ask({"Thanks, that works.", "Thank you."}));
    dialogue.reply(
        "The user says thanks.", choices.answer({"I am glad that it helps.", "You are welcome."})
    );
  }
}

void write_story(Dialogue& dialogue, Choices& choices) {
  constexpr std::array<List, 10> kHeroes = {
      "fox",
      "rabbit",
      "mouse",
      "boy",
      "girl",
      "miller",
      "old man",
      "young queen",
      "little robot",
      "dragon"};
  const std::string_view hero = choices.of(kHeroes);
  std::string_view friend_kind = choices.of(kHeroes);
  while (friend_kind == hero) {
    friend_kind = choices.of(kHeroes);
  }
  const std::string_view name = some_name(choices);
  std::string_view other = some_name(choices);
  while (other == name) {
    other = some_name(choices);
  }
  const std::string_view thing =
      choices.of({"red ball", "blue feather", "lost letter", "magic stone", "old map", "golden key"}
      );
  dialogue.system(dialogue.thinks() ? "You are a storyteller." : "");
  dialogue.user(choices.ask(
      {"Tell me a story about a {}.",
       "Write a short story about a {}.",
       "I want to hear a story with a {}."},
      hero
  ));
  std::string story = fmt::format(
      "Once upon a time there was a {} named {} who lived near the {}. ",
      hero,
      name,
      choices.answer({"mountain", "harbor", "island", "market", "forest", "river"})
  );
  story += choices.answer(
      {"One morning {0} saw a {1} in the grass. ",
       "One day {0} found a {1} under a tree. ",
       "In the evening {0} discovered a {1} by the road. "},
      name,
      thing
  );
  story += choices.answer(
      {"\"What a beautiful thing!\" said {}. ", "\"Who lost this?\" asked {}. "}, name
  );
  story += fmt::format(
      "{} went to the {} and met a {} named {}. ",
      name,
      choices.answer({"garden", "castle", "forest", "mountain", "village"}),
      friend_kind,
      other
  );
  story += choices.answer(
      {"\"That is my {1}!\" said {0}. \"I looked for it all day.\" ",
       "{0} looked at the {1} and smiled. ",
       "\"I have never seen such a {1},\" said {0}. \"Let us keep it safe.\" "},
      other,
      thing
  );
  story += choices.answer(
      {"{0} and {1} shared the {2} and were happy. ",
       "Together they carried the {2} home and sang a song. "},
      name,
      other,
      thing
  );
  story += choices.answer(
      {"From that day on they met every week.",
       "That night {0} slept very well.",
       "And so the day ended well."},
      name
  );
  dialogue.reply(
      fmt::format("The story has a {}, a {} and a {}.", hero, thing, friend_kind), story
  );
}

}  // namespace octet::train
