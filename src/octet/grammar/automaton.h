// Rules as a machine that reads bytes and control tokens: nodes with edges, and calls of rules that
// come back. Immutable once built. Not for running it (grammar_states.h). Invariants: every node
// can reach the end of its rule within its height of nested calls; no rule calls itself before it
// has read something.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "octet/base/token.h"
#include "octet/grammar/grammar.h"
#include "octet/grammar/pattern.h"

namespace octet {

using NodeId = int32_t;

class Automaton {
 public:
  struct ByteEdge {
    uint8_t first = 0;
    uint8_t last = 0;
    NodeId target = 0;
  };
  struct TokenEdge {
    TokenId token = 0;
    NodeId target = 0;
  };
  struct Call {
    int rule = 0;
    NodeId back = 0;
    bool tail = false;  // nothing follows in the calling rule
  };
  struct Node {
    std::vector<NodeId> silent;  // reached without reading
    std::vector<ByteEdge> bytes;
    std::vector<TokenEdge> tokens;
    std::vector<Call> calls;
    bool end = false;  // of its rule
  };

  /// Throws Error: kResourceExhausted for too many nodes, kMalformed for a rule that can never end,
  /// kUnsupported for a left-recursive one, each naming the rule.
  Automaton(const PatternRules& rules, const GrammarLimits& limits);

  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  NodeId start(int rule) const { return starts_[static_cast<size_t>(rule)]; }
  int root() const { return root_; }
  /// Nested calls that suffice to end the rule from any of its nodes.
  int height(int rule) const { return heights_[static_cast<size_t>(rule)]; }
  int max_depth() const { return max_depth_; }

  /// Bytes of one class are never told apart.
  int byte_class(uint8_t byte) const { return classes_[byte]; }
  int class_count() const { return class_count_; }
  /// One byte of a class.
  uint8_t class_byte(int byte_class) const { return class_bytes_[static_cast<size_t>(byte_class)]; }
  bool class_is_one_byte(int byte_class) const {
    return class_sizes_[static_cast<size_t>(byte_class)] == 1;
  }

 private:
  friend class AutomatonBuilder;
  void find_classes();
  void find_heights(const PatternRules& rules);
  void drop_dead_ends(const std::vector<int>& heights);
  void mark_tails();
  void refuse_left_recursion(const PatternRules& rules) const;
  std::vector<bool> nullable_rules() const;

  std::vector<Node> nodes_;
  std::vector<NodeId> starts_;
  std::vector<int> owners_;  // the rule of a node
  std::vector<int> heights_;
  int root_ = 0;
  int max_depth_ = 0;
  std::array<uint8_t, 256> classes_{};
  std::vector<uint8_t> class_bytes_;
  std::vector<int> class_sizes_;
  int class_count_ = 0;
};

}  // namespace octet
