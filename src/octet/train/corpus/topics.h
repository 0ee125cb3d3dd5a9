// What the dialogues of the corpus are about: a function a topic, which writes one dialogue from
// its choices. Together they are the world that a small target learns. Not for spelling
// (dialogue.h). Invariant: what the model says follows from what it was told or what a tool
// answered: prices multiply, sums are right, words come back in order.
#pragma once

#include <string>

#include "octet/train/corpus/dialogue.h"

namespace octet::train {

// trade.cpp
void write_shop(Dialogue& dialogue, Choices& choices);
void write_selling(Dialogue& dialogue, Choices& choices);
void write_order(Dialogue& dialogue, Choices& choices);
// rooms.cpp
void write_home(Dialogue& dialogue, Choices& choices);
void write_robot(Dialogue& dialogue, Choices& choices);
// knowledge.cpp
void write_questions(Dialogue& dialogue, Choices& choices);
void write_code(Dialogue& dialogue, Choices& choices);
void write_story(Dialogue& dialogue, Choices& choices);
// exact.cpp
void write_sums(Dialogue& dialogue, Choices& choices);
void write_json(Dialogue& dialogue, Choices& choices);
void write_copying(Dialogue& dialogue, Choices& choices);

// words.cpp
std::string some_item(Choices& choices);
std::string_view some_name(Choices& choices);
std::string_view some_room(Choices& choices);
std::string_view some_word(Choices& choices);
/// "" or the sentence of the conversational mode.
std::string brief_sentence(Choices& choices);

/// Dialogue number `dialogue` of a corpus: its topic, its thinking and its words.
std::string write_dialogue(uint64_t seed, int64_t dialogue, double thinking_share);

}  // namespace octet::train
