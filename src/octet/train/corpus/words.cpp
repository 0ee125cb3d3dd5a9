#include <array>
#include <string>

#include "octet/train/corpus/topics.h"

namespace octet::train {
namespace {

using List = std::string_view;

constexpr std::array<List, 8> kMaterials = {
    "iron ", "steel ", "bronze ", "copper ", "silver ", "dark iron ", "elven steel ", ""};
constexpr std::array<List, 12> kItems = {
    "sword",
    "axe",
    "shield",
    "helmet",
    "dagger",
    "hammer",
    "spear",
    "mace",
    "bow",
    "chain shirt",
    "pair of boots",
    "pair of gauntlets"};
constexpr std::array<List, 24> kNames = {"Anna",  "Ben",  "Clara",  "David", "Emma", "Felix",
                                         "Grace", "Hugo", "Iris",   "Jack",  "Kate", "Leo",
                                         "Mia",   "Noah", "Olga",   "Paul",  "Rosa", "Sam",
                                         "Tara",  "Uma",  "Victor", "Wendy", "Yara", "Zoe"};
constexpr std::array<List, 6> kRooms = {
    "kitchen", "bedroom", "bathroom", "living room", "office", "garage"};
constexpr std::array<List, 30> kWords = {
    "apple",    "bird",   "bread",  "bridge", "candle", "clock",  "cloud", "door",
    "field",    "forest", "garden", "glass",  "island", "letter", "light", "morning",
    "mountain", "music",  "paper",  "river",  "road",   "shadow", "ship",  "silver",
    "stone",    "summer", "table",  "wind",   "window", "winter"};

}  // namespace

std::string some_item(Choices& choices) {
  const std::string_view material = choices.of(kMaterials);
  return std::string(material) + std::string(choices.of(kItems));
}

std::string_view some_name(Choices& choices) {
  return choices.of(kNames);
}

std::string_view some_room(Choices& choices) {
  return choices.of(kRooms);
}

std::string_view some_word(Choices& choices) {
  return choices.of(kWords);
}

std::string brief_sentence(Choices& choices) {
  return choices.happens(0.4)
             ? " Keep responses brief, natural, and easy to understand in conversation."
             : "";
}

std::string write_dialogue(uint64_t seed, int64_t dialogue, double thinking_share) {
  struct Topic {
    double share;
    void (*write)(Dialogue&, Choices&);
  };
  // Sums have more than their part of the sight: every pair of numbers wants to be seen.
  constexpr std::array<Topic, 11> kTopics = {{
      {0.12, write_shop},
      {0.03, write_selling},
      {0.08, write_order},
      {0.12, write_home},
      {0.11, write_robot},
      {0.13, write_questions},
      {0.06, write_code},
      {0.06, write_story},
      {0.18, write_sums},
      {0.05, write_json},
      {0.06, write_copying},
  }};
  Choices choices(seed, dialogue);
  Dialogue result(choices.happens(thinking_share));
  const auto place = static_cast<double>(choices.number(0, 999'999)) * 1e-6;
  double sum = 0.0;
  for (const Topic& topic : kTopics) {
    sum += topic.share;
    if (place < sum || &topic == &kTopics.back()) {
      topic.write(result, choices);
      break;
    }
  }
  return result.text();
}

}  // namespace octet::train
