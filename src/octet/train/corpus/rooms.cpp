// Topics with things that move and switch: a smart home and a robot on the table.
#include <array>
#include <span>
#include <string>

#include <fmt/format.h>

#include "octet/train/corpus/topics.h"

namespace octet::train {
namespace {

std::vector<Tool> home_tools() {
  const ToolParameter room = {"room", "Name of the room.", "STRING", {}};
  return {
      {"set_light",
       "Switch a light on or off.",
       {room, {"state", "New state.", "STRING", {"on", "off"}}},
       {"room", "state"}},
      {"get_temperature", "Read the temperature of a room.", {room}, {"room"}},
      {"set_thermostat",
       "Set the target temperature of a room.",
       {{"celsius", "Target temperature.", "NUMBER", {}}, room},
       {"room", "celsius"}},
      {"set_timer",
       "Start a timer.",
       {{"label", "Name of the timer.", "STRING", {}}, {"minutes", "Minutes.", "INTEGER", {}}},
       {"minutes"}},
      {"play_music", "Play music.", {{"genre", "Kind of music.", "STRING", {}}, room}, {"genre"}}};
}

std::string consent(Choices& choices) {
  return choices.answer({"Sure.", "Okay.", "Of course.", "Okay, one moment."});
}

void switch_light(Dialogue& dialogue, Choices& choices) {
  const std::string room(some_room(choices));
  const std::string state(choices.of({"on", "off"}));
  dialogue.user(choices.ask(
      {"Turn {0} the light in the {1}.",
       "Can you turn {0} the lights in the {1}?",
       "Switch the {1} light {0}, please."},
      state,
      room
  ));
  dialogue.open_reply(fmt::format("The user wants the light in the {} {}.", room, state));
  dialogue.say(consent(choices));
  dialogue.call("set_light", {{"room", room}, {"state", state}}, {{"ok", true}});
  dialogue.say(
      choices.answer({"I turned the {} light {}.", "The light in the {} is {} now."}, room, state)
  );
  dialogue.close_reply();
}

void read_temperature(Dialogue& dialogue, Choices& choices) {
  const std::string room(some_room(choices));
  const int64_t celsius = choices.number(14, 27);
  dialogue.user(choices.ask(
      {"Is it cold in the {}?", "What is the temperature in the {}?", "How warm is the {}?"}, room
  ));
  dialogue.open_reply(fmt::format("I need the temperature of the {}.", room));
  dialogue.say(choices.answer(
      {"One moment, I look at the sensor in the {}.",
       "I will check the thermometer in the {}.",
       "Let me check the {}."},
      room
  ));
  dialogue.call("get_temperature", {{"room", room}}, {{"celsius", celsius}});
  const char* judgement = celsius <= 17   ? ", which is quite cold"
                          : celsius >= 24 ? ", which is quite warm"
                                          : "";
  dialogue.say(fmt::format("It is {} degrees in the {}{}.", celsius, room, judgement));
  dialogue.close_reply();
}

void set_thermostat(Dialogue& dialogue, Choices& choices) {
  const std::string room(some_room(choices));
  const int64_t celsius = choices.number(15, 25);
  dialogue.user(choices.ask(
      {"Set the {0} to {1} degrees.",
       "Make the {0} {1} degrees, please.",
       "I want the {0} at {1} degrees."},
      room,
      celsius
  ));
  dialogue.open_reply(fmt::format("The user wants {} degrees in the {}.", celsius, room));
  dialogue.say(consent(choices));
  dialogue.call("set_thermostat", {{"celsius", celsius}, {"room", room}}, {{"ok", true}});
  dialogue.say(fmt::format("The {} will be at {} degrees soon.", room, celsius));
  dialogue.close_reply();
}

void set_timer(Dialogue& dialogue, Choices& choices) {
  const std::string label(choices.of({"tea", "eggs", "pasta", "pizza", "bread", "cake", "nap"}));
  const int64_t minutes = choices.number(1, 12) * 5 - choices.number(0, 4);
  dialogue.user(choices.ask(
      {"Set a timer for {} minutes for the {}.", "Start a {} minute timer for the {}."},
      minutes,
      label
  ));
  dialogue.open_reply(fmt::format("The user needs a timer of {} minutes.", minutes));
  dialogue.say(consent(choices));
  dialogue.call("set_timer", {{"label", label}, {"minutes", minutes}}, {{"ok", true}});
  dialogue.say(choices.answer(
      {"Your {} timer is set to {} minutes.", "The timer for the {} runs for {} minutes."},
      label,
      minutes
  ));
  dialogue.close_reply();
}

void play_music(Dialogue& dialogue, Choices& choices) {
  const std::string room(some_room(choices));
  const std::string genre(choices.of({"jazz", "rock", "folk", "classical", "pop", "blues"}));
  dialogue.user(
      choices.ask({"I want to hear {} in the {}.", "Play some {} in the {}."}, genre, room)
  );
  dialogue.open_reply(fmt::format("The user wants {} music.", genre));
  dialogue.say(consent(choices));
  dialogue.call("play_music", {{"genre", genre}, {"room", room}}, {{"ok", true}});
  dialogue.say(
      choices.answer({"Here is some {} for the {}.", "Now playing {} in the {}."}, genre, room)
  );
  dialogue.close_reply();
}

constexpr std::array<std::string_view, 6> kAnimations = {
    "happy_nod", "curious_tilt", "scan_room", "wave_antenna", "sad_droop", "little_dance"};
constexpr std::array<std::string_view, 3> kSpeeds = {"slow", "normal", "fast"};
constexpr std::array<std::string_view, 5> kDirections = {"left", "right", "up", "down", "front"};

std::vector<std::string_view> as_list(std::span<const std::string_view> words) {
  return {words.begin(), words.end()};
}

std::vector<Tool> robot_tools() {
  return {
      {"play_animation",
       "Play an expressive head and antenna animation on the robot.",
       {{"animation_name", "Name of the animation.", "STRING", as_list(kAnimations)},
        {"speed", "Speed of the animation.", "STRING", as_list(kSpeeds)}},
       {"animation_name"}},
      {"look_at",
       "Turn the head of the robot to a direction.",
       {{"direction", "Where to look.", "STRING", as_list(kDirections)}},
       {"direction"}},
      {"describe_view", "Describe what the camera sees.", {}, {}}};
}

void animate(
    Dialogue& dialogue, std::string_view animation, std::string_view speed, std::string_view after
) {
  dialogue.call(
      "play_animation",
      {{"animation_name", std::string(animation)}, {"speed", std::string(speed)}},
      {{"ok", true}}
  );
  dialogue.say(after);
  dialogue.close_reply();
}

void ask_animation(Dialogue& dialogue, Choices& choices) {
  const std::string_view animation = choices.of(kAnimations);
  const std::string_view speed = choices.of(kSpeeds);
  dialogue.user(choices.ask(
      {"Play the animation {} at {} speed.", "Do the {} move, {}.", "Show me {}, {} please."},
      animation,
      speed
  ));
  dialogue.open_reply(fmt::format("The user wants the animation {}.", animation));
  dialogue.say(choices.answer({"Here it comes.", "Okay.", "Sure, watch this."}));
  const std::string after =
      choices.answer({"Did you like it?", "That was fun.", "Shall I do it again?"});
  animate(dialogue, animation, speed, after);
}

void ask_direction(Dialogue& dialogue, Choices& choices) {
  const std::string direction(choices.of({"left", "right", "up", "down"}));
  dialogue.user(choices.ask(
      {"Look {}.", "Please look {}.", "Can you turn your head {}?", "{}, please."}, direction
  ));
  dialogue.open_reply(fmt::format("The user wants me to look {}.", direction));
  dialogue.say(
      choices.answer({"Okay, I look {}.", "Turning my head {}.", "Sure, looking {}."}, direction)
  );
  dialogue.call("look_at", {{"direction", direction}}, {{"ok", true}});
  dialogue.say(choices.answer({"Done.", "I am looking {} now.", "Like this?"}, direction));
  dialogue.close_reply();
}

void ask_view(std::string_view robot, Dialogue& dialogue, Choices& choices) {
  const std::string_view things[] = {
      choices.of({"a red cup", "a white cup", "a small lamp", "a green plant"}),
      choices.of({"a wooden table", "an open window", "a blue chair", "a sleeping cat"})};
  const std::string view = fmt::format("{} and {}", things[0], things[1]);
  dialogue.user(choices.ask(
      {"What do you see, {}?",
       "{}, what is in the room?",
       "Look around and tell me what you see, {}."},
      robot
  ));
  dialogue.open_reply("I need the camera to see the room.");
  dialogue.say(choices.answer({"Let me look.", "I will have a look.", "One moment, I look around."})
  );
  dialogue.call("describe_view", {}, {{"view", view}});
  dialogue.say(fmt::format("I see {}.", view));
  dialogue.close_reply();
}

void ask_name(std::string_view robot, Dialogue& dialogue, Choices& choices) {
  dialogue.user(choices.ask({"What is your name?", "Tell me about yourself.", "Who are you?"}));
  dialogue.reply(
      "The user asks who I am.",
      choices.answer(
          {"My name is {}. I am a companion robot and I like to help.",
           "I am {}, a small robot on your table. I can look around, move my head and talk with "
           "you."},
          robot
      )
  );
}

void tell_feeling(std::string_view robot, Dialogue& dialogue, Choices& choices) {
  struct Feeling {
    std::string said;
    std::string_view answer;
    std::string_view animation;
    std::string_view speed;
    std::string_view after;
  };
  constexpr std::string_view kHere = "I am here if you need me.";
  constexpr std::string_view kTogether = "Let us do something together.";
  constexpr std::string_view kNext = "What shall we do next?";
  constexpr std::string_view kTalk = "Do you want to talk about it?";
  const Feeling feelings[] = {
      {fmt::format("Hello {}!", robot),
       "Hello! It is nice to see you.",
       "wave_antenna",
       "normal",
       kNext},
      {"I feel sad today.", "I am sorry to hear that.", "sad_droop", "slow", kTalk},
      {"I lost my keys.", "Oh no, that is a pity.", "sad_droop", "normal", kHere},
      {"I am so happy today.", "That makes me happy too.", "happy_nod", "fast", kTogether},
      {"I won the game today!", "Well done!", "little_dance", "fast", kNext},
      {"I made a cake.", "That smells great!", "happy_nod", "normal", kTogether},
      {"I have a secret for you.", "Oh, tell me more!", "curious_tilt", "slow", kTalk},
      {"Can you dance?", "Of course I can.", "little_dance", "normal", kTogether},
      {fmt::format("How do you like the room, {}?", robot),
       "Let me look around.",
       "scan_room",
       "slow",
       kNext},
      {fmt::format("My friend {} is here.", some_name(choices)),
       "Nice to meet you.",
       "wave_antenna",
       "fast",
       kTogether},
      {fmt::format("Good night, {}.", robot),
       "Good night, sleep well.",
       "sad_droop",
       "slow",
       kHere}};
  const Feeling& feeling = feelings[choices.number(0, std::ssize(feelings) - 1)];
  dialogue.user(feeling.said);
  dialogue.open_reply(fmt::format("I answer and play {}.", feeling.animation));
  dialogue.say(feeling.answer);
  animate(dialogue, feeling.animation, feeling.speed, feeling.after);
}

}  // namespace

void write_home(Dialogue& dialogue, Choices& choices) {
  const std::string system =
      std::string(choices.of({"You control a smart home.", "You are a helpful home assistant."})) +
      brief_sentence(choices);
  dialogue.system(system, choices.happens(0.4) ? home_tools() : std::vector<Tool>());
  for (int64_t turns = choices.number(1, 4); turns > 0; --turns) {
    switch (choices.number(0, 4)) {
      case 0:
        switch_light(dialogue, choices);
        break;
      case 1:
        read_temperature(dialogue, choices);
        break;
      case 2:
        set_thermostat(dialogue, choices);
        break;
      case 3:
        set_timer(dialogue, choices);
        break;
      default:
        play_music(dialogue, choices);
    }
  }
}

void write_robot(Dialogue& dialogue, Choices& choices) {
  const std::string_view robot = choices.of({"Robi", "Lumi", "Momo", "Pico"});
  const std::string system = fmt::format(
      "You are {}, an expressive tabletop companion robot.{}", robot, brief_sentence(choices)
  );
  dialogue.system(system, choices.happens(0.4) ? robot_tools() : std::vector<Tool>());
  for (int64_t turns = choices.number(1, 3); turns > 0; --turns) {
    switch (choices.number(0, 4)) {
      case 0:
        ask_name(robot, dialogue, choices);
        break;
      case 1:
        ask_animation(dialogue, choices);
        break;
      case 2:
        ask_direction(dialogue, choices);
        break;
      case 3:
        ask_view(robot, dialogue, choices);
        break;
      default:
        tell_feeling(robot, dialogue, choices);
    }
  }
}

}  // namespace octet::train
