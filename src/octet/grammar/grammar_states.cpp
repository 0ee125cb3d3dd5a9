#include "octet/grammar/grammar_states.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

constexpr StateId kUnknown = -1;
constexpr size_t kMaxPlaces = 4096;  // of one state: a grammar that is more ambiguous is refused
// Readers that the places of one state reach, each counted as often as it is reached: the work of a
// state, which a step of everybody waits for. A choice of so many strings has one place.
constexpr size_t kMostReaders = size_t{1} << 16U;
constexpr int64_t kMostKeptPlaces = int64_t{1} << 22U;  // of all states, 16 bytes each
constexpr size_t kMaxMaskBytes = size_t{32} << 20U;
constexpr size_t kMinClassSize = 16;  // characters from which a class is worth its table

void refuse_more_ways(size_t ways, size_t most) {
  if (ways > most) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the grammar is ambiguous in more than {} ways", most)
    );
  }
}

void set_bit(std::vector<uint64_t>& words, TokenId token) {
  words[static_cast<size_t>(token) / 64] |= uint64_t{1} << (static_cast<size_t>(token) % 64);
}

/// First bytes and continuations of all characters beyond ASCII, by length and special first byte.
using Bytes = std::pair<uint8_t, uint8_t>;
constexpr std::array<std::array<Bytes, 4>, 8> kLongCharacters = {{
    {{{0xC2, 0xDF}, {0x80, 0xBF}}},
    {{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
    {{{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}},
    {{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
    {{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}},
}};

}  // namespace

size_t GrammarStates::PlacesHash::operator()(const std::vector<Place>& places) const {
  uint64_t hash = 0x9E3779B97F4A7C15U;
  for (const Place& place : places) {
    hash ^= (static_cast<uint64_t>(static_cast<uint32_t>(place.node)) << 32U) |
            static_cast<uint32_t>(place.stack);
    hash *= 0xD6E8FEB86659FD93U;
    hash ^= hash >> 32U;
  }
  return static_cast<size_t>(hash);
}

GrammarStates::GrammarStates(
    std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTable> tokens
)
    : automaton_(std::move(automaton)), tokens_(std::move(tokens)), states_(2), frames_(1) {
  const StateId start = state_of({{.node = automaton_->start(automaton_->root()), .stack = 0}});
  // The start is a state like any other; it gets its number by being the first one made.
  if (start != kStart) {
    throw Error(ErrorKind::kMalformed, "no text can ever match the grammar");
  }
}

const GrammarStates::Reach& GrammarStates::reach(NodeId start) {
  const auto [at, added] = reaches_.try_emplace(start);
  if (!added) {
    return at->second;
  }
  Reach out;
  std::vector<NodeId> work = {start};
  std::set<NodeId> seen;
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) {
      continue;
    }
    const Automaton::Node& node = automaton_->node(id);
    if (!node.bytes.empty() || !node.tokens.empty()) {
      out.readers.push_back(id);
    }
    out.calls.insert(out.calls.end(), node.calls.begin(), node.calls.end());
    out.end = out.end || node.end;
    work.insert(work.end(), node.silent.begin(), node.silent.end());
  }
  at->second = std::move(out);
  return at->second;
}

/// The stack with one more return; 0 with below != 0 never happens, -1: too deep.
GrammarStates::StackId GrammarStates::push(NodeId back, StackId below, int height) {
  const int depth = frames_[static_cast<size_t>(below)].depth + 1;
  if (depth + height > automaton_->max_depth()) {
    return -1;
  }
  const uint64_t key =
      (static_cast<uint64_t>(static_cast<uint32_t>(back)) << 32U) | static_cast<uint32_t>(below);
  const auto [at, added] = frame_ids_.try_emplace(key, static_cast<StackId>(frames_.size()));
  if (added) {
    frames_.push_back({.back = back, .below = below, .depth = depth});
  }
  return at->second;
}

/// The state of everything that the places reach without reading.
StateId GrammarStates::state_of(std::vector<Place> work) {
  std::set<Place> seen;
  std::vector<Place> places;
  bool may_end = false;
  while (!work.empty()) {
    const Place place = work.back();
    work.pop_back();
    if (!seen.insert(place).second) {
      continue;
    }
    refuse_more_ways(seen.size(), kMaxPlaces);
    const Reach& reached = reach(place.node);
    // Places may each reach nearly all readers, and these are counted before they are told apart.
    refuse_more_ways(places.size() + reached.readers.size(), kMostReaders);
    for (const NodeId reader : reached.readers) {
      places.push_back({.node = reader, .stack = place.stack});
    }
    for (const Automaton::Call& call : reached.calls) {
      const StackId stack =
          call.tail ? place.stack : push(call.back, place.stack, automaton_->height(call.rule));
      if (stack >= 0) {
        work.push_back({.node = automaton_->start(call.rule), .stack = stack});
      }
    }
    if (reached.end && place.stack == 0) {
      may_end = true;
    } else if (reached.end) {
      const Frame& frame = frames_[static_cast<size_t>(place.stack)];
      work.push_back({.node = frame.back, .stack = frame.below});
    }
  }
  if (places.empty() && !may_end) {
    return kDead;
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return state_at(std::move(places), may_end);
}

/// The state of these places; a new one where there is none yet.
StateId GrammarStates::state_at(std::vector<Place> places, bool may_end) {
  std::vector<StateId>& same = state_ids_[places];
  for (const StateId id : same) {
    if (states_[static_cast<size_t>(id)].may_end == may_end) {
      return id;
    }
  }
  if (static_cast<int64_t>(states_.size()) >= kMaxStates) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the grammar needs more than {} states for this text", kMaxStates)
    );
  }
  kept_places_ += std::ssize(places);
  if (kept_places_ > kMostKeptPlaces) {
    throw Error(ErrorKind::kResourceExhausted, "the grammar needs too much memory for this text");
  }
  const auto id = static_cast<StateId>(states_.size());
  same.push_back(id);
  State state;
  state.places = std::move(places);
  state.may_end = may_end;
  state.has_tokens = std::any_of(state.places.begin(), state.places.end(), [&](const Place& place) {
    return !automaton_->node(place.node).tokens.empty();
  });
  states_.push_back(std::move(state));
  return id;
}

StateId GrammarStates::step(StateId id, int byte_class) {
  {
    State& state = states_[static_cast<size_t>(id)];
    if (state.next.empty()) {
      state.next.assign(static_cast<size_t>(automaton_->class_count()), kUnknown);
    }
    const StateId known = state.next[static_cast<size_t>(byte_class)];
    if (known != kUnknown) {
      return known;
    }
  }
  const uint8_t byte = automaton_->class_byte(byte_class);
  std::vector<Place> targets;
  for (const Place& place : states_[static_cast<size_t>(id)].places) {
    for (const Automaton::ByteEdge& edge : automaton_->node(place.node).bytes) {
      if (edge.first <= byte && byte <= edge.last) {
        targets.push_back({.node = edge.target, .stack = place.stack});
      }
    }
  }
  const StateId next = targets.empty() ? kDead : state_of(std::move(targets));
  states_[static_cast<size_t>(id)].next[static_cast<size_t>(byte_class)] = next;
  return next;
}

StateId GrammarStates::step_token(StateId id, TokenId token) {
  std::vector<Place> targets;
  for (const Place& place : states_[static_cast<size_t>(id)].places) {
    for (const Automaton::TokenEdge& edge : automaton_->node(place.node).tokens) {
      if (edge.token == token) {
        targets.push_back({.node = edge.target, .stack = place.stack});
      }
    }
  }
  return targets.empty() ? kDead : state_of(std::move(targets));
}

StateId GrammarStates::next(StateId state, TokenId token) {
  const std::lock_guard lock(mutex_);
  const Tokenizer& tokenizer = tokens_->tokenizer();
  if (tokenizer.is_control(token) || tokenizer.is_stop(token)) {
    const StateId behind = step_token(state, token);
    return behind == kDead && tokenizer.is_stop(token) &&
                   states_[static_cast<size_t>(state)].may_end
               ? kEnded
               : behind;
  }
  for (const char c : tokenizer.bytes(token)) {
    state = step_byte(state, static_cast<uint8_t>(c));
  }
  return state;
}

bool GrammarStates::may_end(StateId state) const {
  const std::lock_guard lock(mutex_);
  return states_[static_cast<size_t>(state)].may_end;
}

bool GrammarStates::crowded() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(states_.size()) > kMaxStates / 4;
}

/// Every sequence of those bytes leads from one state to another.
bool GrammarStates::all_lead_to(StateId from, std::span<const Bytes> bytes, StateId to) {
  if (bytes.empty() || bytes.front().first == 0) {
    return from == to;
  }
  int last_class = -1;
  for (int byte = bytes.front().first; byte <= bytes.front().second; ++byte) {
    const int byte_class = automaton_->byte_class(static_cast<uint8_t>(byte));
    if (byte_class != last_class && !all_lead_to(step(from, byte_class), bytes.subspan(1), to)) {
      return false;
    }
    last_class = byte_class;
  }
  return true;
}

/// The characters that lead from a state back to it.
CharacterClass GrammarStates::loop_class(StateId state) {
  CharacterClass out;
  for (uint8_t byte = 0; byte < 0x80; ++byte) {
    out.ascii[byte] = step_byte(state, byte) == state;
  }
  out.others = std::all_of(kLongCharacters.begin(), kLongCharacters.end(), [&](const auto& bytes) {
    return all_lead_to(state, bytes, state);
  });
  return out;
}

void GrammarStates::mark_tree(StateId state, const TokenTree& tree, std::vector<uint64_t>& words) {
  std::vector<StateId> path(static_cast<size_t>(tree.max_depth) + 1, kDead);
  path[0] = state;
  const size_t count = tree.nodes.size() - 1;
  for (size_t i = 0; i < count;) {
    const TokenTree::Node& node = tree.nodes[i];
    const StateId next = step_byte(path[node.depth], node.byte);
    if (next == kDead) {
      i = static_cast<size_t>(node.skip);
      continue;
    }
    path[static_cast<size_t>(node.depth) + 1] = next;
    for (int32_t at = node.first_token; at < tree.nodes[i + 1].first_token; ++at) {
      set_bit(words, tree.tokens[static_cast<size_t>(at)]);
    }
    ++i;
  }
}

std::vector<uint64_t> GrammarStates::compute_mask(StateId state) {
  std::vector<uint64_t> words(tokens_->words());
  const CharacterClass loop = loop_class(state);
  if (loop.ascii.count() >= kMinClassSize) {
    const std::shared_ptr<const ClassTokens> known = tokens_->class_tokens(loop);
    words = known->inside;
    mark_tree(state, known->outside, words);
  } else {
    mark_tree(state, tokens_->tree(), words);
  }
  const State& here = states_[static_cast<size_t>(state)];
  for (const Place& place : here.places) {
    for (const Automaton::TokenEdge& edge : automaton_->node(place.node).tokens) {
      set_bit(words, edge.token);
    }
  }
  if (here.may_end) {
    for (const TokenId stop : tokens_->tokenizer().stop_ids()) {
      set_bit(words, stop);
    }
  }
  return words;
}

void GrammarStates::fill_mask(StateId state, std::span<uint64_t> words) {
  const std::lock_guard lock(mutex_);
  std::fill(words.begin(), words.end(), 0);
  if (state == kDead || state == kEnded) {
    return;
  }
  auto known = masks_.find(state);
  if (known == masks_.end()) {
    if ((masks_.size() + 1) * tokens_->words() * sizeof(uint64_t) > kMaxMaskBytes) {
      masks_.clear();
    }
    known = masks_.emplace(state, compute_mask(state)).first;
  }
  std::copy_n(known->second.begin(), std::min(words.size(), known->second.size()), words.begin());
}

/// The one byte that may follow; -1 when there is a choice, an end or a control token.
int GrammarStates::only_byte(StateId state) {
  if (states_[static_cast<size_t>(state)].may_end ||
      states_[static_cast<size_t>(state)].has_tokens) {
    return -1;
  }
  int found = -1;
  for (int byte_class = 0; byte_class < automaton_->class_count(); ++byte_class) {
    if (step(state, byte_class) == kDead) {
      continue;
    }
    if (found >= 0 || !automaton_->class_is_one_byte(byte_class)) {
      return -1;
    }
    found = automaton_->class_byte(byte_class);
  }
  return found;
}

GrammarStates::Forced GrammarStates::forced(StateId state, size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  Forced out;
  if (state == kDead || state == kEnded) {
    return out;
  }
  while (out.bytes.size() < max_bytes) {
    const int byte = only_byte(state);
    if (byte < 0) {
      break;
    }
    out.bytes.push_back(static_cast<char>(byte));
    state = step_byte(state, static_cast<uint8_t>(byte));
  }
  out.behind = state;
  const State& here = states_[static_cast<size_t>(state)];
  TokenId only = kNoToken;
  bool several = here.may_end;
  for (const Place& place : here.places) {
    const Automaton::Node& node = automaton_->node(place.node);
    several = several || !node.bytes.empty();
    for (const Automaton::TokenEdge& edge : node.tokens) {
      several = several || (only != kNoToken && only != edge.token);
      only = edge.token;
    }
  }
  // Where only control tokens or the end may follow, no piece can reach across.
  out.open = std::any_of(here.places.begin(), here.places.end(), [&](const Place& place) {
    return !automaton_->node(place.node).bytes.empty();
  });
  if (!several && only != kNoToken) {
    out.token = only;
    out.behind = step_token(state, only);
  }
  return out;
}

}  // namespace octet
