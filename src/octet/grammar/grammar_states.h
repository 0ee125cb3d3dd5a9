// Runs an automaton: sets of places where a text may stand, made on demand, numbered, and
// remembered with their transitions and masks. Shared by all matchers of a grammar that began at
// about the same time. All functions are safe to call from several threads. Invariants: state
// numbers never change; equal sets have equal numbers; every state but kDead and kEnded can be
// continued or may end.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "octet/base/token.h"
#include "octet/grammar/automaton.h"
#include "octet/grammar/token_table.h"

namespace octet {

using StateId = int32_t;

class GrammarStates {
 public:
  static constexpr StateId kDead = 0;   // no text continues
  static constexpr StateId kEnded = 1;  // a stop token was taken
  static constexpr StateId kStart = 2;

  GrammarStates(
      std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTable> tokens
  );

  /// The state behind a token; kDead when it is forbidden. Throws Error(kResourceExhausted) when
  /// the text needs more states than kMaxStates, or one that is too ambiguous to be worked out
  /// between two steps.
  StateId next(StateId state, TokenId token);
  bool may_end(StateId state) const;
  void fill_mask(StateId state, std::span<uint64_t> words);
  /// What is fixed behind a state: bytes of text, then perhaps one control token.
  struct Forced {
    std::string bytes;
    TokenId token = kNoToken;
    StateId behind = kDead;  // where it leads
    bool open = true;        // more text may follow without a border
  };
  Forced forced(StateId state, size_t max_bytes);

  /// So many states that a new matcher should rather begin with fresh ones.
  bool crowded() const;

  static constexpr int64_t kMaxStates = 200'000;

 private:
  using StackId = int32_t;  // 0: empty
  struct Place {
    NodeId node = 0;
    StackId stack = 0;
    bool operator==(const Place&) const = default;
    auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct Frame {
    NodeId back = 0;
    StackId below = 0;
    int depth = 0;
  };
  struct State {
    std::vector<Place> places;
    bool may_end = false;
    bool has_tokens = false;
    std::vector<StateId> next = {};  // by byte class; empty until asked for
  };
  struct PlacesHash {
    size_t operator()(const std::vector<Place>& places) const;
  };
  /// What a node reaches without reading and without calls.
  struct Reach {
    std::vector<NodeId> readers;  // nodes with edges
    std::vector<Automaton::Call> calls;
    bool end = false;
  };

  const Reach& reach(NodeId start);
  StackId push(NodeId back, StackId below, int height);
  StateId state_of(std::vector<Place> work);
  StateId state_at(std::vector<Place> places, bool may_end);
  StateId step(StateId id, int byte_class);
  StateId step_byte(StateId state, uint8_t byte) {
    return step(state, automaton_->byte_class(byte));
  }
  StateId step_token(StateId id, TokenId token);
  bool all_lead_to(StateId from, std::span<const std::pair<uint8_t, uint8_t>> bytes, StateId to);
  CharacterClass loop_class(StateId state);
  std::vector<uint64_t> compute_mask(StateId state);
  void mark_tree(StateId state, const TokenTree& tree, std::vector<uint64_t>& words);
  int only_byte(StateId state);

  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const TokenTable> tokens_;
  mutable std::mutex mutex_;
  std::vector<State> states_;
  int64_t kept_places_ = 0;  // of all of them
  std::unordered_map<std::vector<Place>, std::vector<StateId>, PlacesHash> state_ids_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, StackId> frame_ids_;
  std::unordered_map<NodeId, Reach> reaches_;
  std::unordered_map<StateId, std::vector<uint64_t>> masks_;
};

}  // namespace octet
