#include "octet/grammar/automaton.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/utf8.h"
#include "octet/grammar/utf8_ranges.h"

namespace octet {

namespace {
constexpr int kNever = std::numeric_limits<int>::max() / 2;
}

/// Turns patterns into nodes, each between a node where it starts and one where it ends.
class AutomatonBuilder {
 public:
  AutomatonBuilder(Automaton& automaton, const GrammarLimits& limits)
      : automaton_(automaton), limits_(limits) {}

  void add_rule(const Pattern& pattern, int rule) {
    owner_ = rule;
    const NodeId start = automaton_.starts_[static_cast<size_t>(rule)];
    const NodeId end = add_node();
    at(end).end = true;
    connect(pattern, start, end, 0);
  }

  NodeId add_node() {
    if (automaton_.size() >= limits_.max_nodes) {
      throw Error(
          ErrorKind::kResourceExhausted,
          fmt::format("the grammar needs more than {} nodes", limits_.max_nodes)
      );
    }
    automaton_.nodes_.emplace_back();
    automaton_.owners_.push_back(owner_);
    return static_cast<NodeId>(automaton_.nodes_.size()) - 1;
  }

 private:
  Automaton::Node& at(NodeId id) { return automaton_.nodes_[static_cast<size_t>(id)]; }

  void connect(const Pattern& pattern, NodeId from, NodeId to, int depth) {
    if (depth > 4 * limits_.max_nesting) {
      throw Error(
          ErrorKind::kResourceExhausted,
          fmt::format("the grammar is nested more than {} levels deep", limits_.max_nesting)
      );
    }
    switch (pattern.kind) {
      case Pattern::Kind::kLiteral:
        connect_literal(pattern.bytes, from, to);
        break;
      case Pattern::Kind::kCharacters:
        connect_characters(pattern.set, from, to);
        break;
      case Pattern::Kind::kToken:
        at(from).tokens.push_back({.token = pattern.token, .target = to});
        break;
      case Pattern::Kind::kSequence:
        connect_sequence(pattern, from, to, depth);
        break;
      case Pattern::Kind::kChoice:
        for (const PatternPtr& part : pattern.parts) {
          connect(*part, from, to, depth + 1);
        }
        break;
      case Pattern::Kind::kRepeat:
        connect_repeat(pattern, from, to, depth);
        break;
      case Pattern::Kind::kRule:
        at(from).calls.push_back({.rule = pattern.rule, .back = to});
        break;
    }
  }

  void connect_literal(const std::string& bytes, NodeId from, NodeId to) {
    if (bytes.empty()) {
      at(from).silent.push_back(to);
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      const NodeId next = i + 1 == bytes.size() ? to : add_node();
      const auto byte = static_cast<uint8_t>(bytes[i]);
      at(from).bytes.push_back({.first = byte, .last = byte, .target = next});
      from = next;
    }
  }

  void connect_characters(const CodeSet& set, NodeId from, NodeId to) {
    for (const CodeRange& range : set) {
      for (const Utf8Range& bytes : utf8_ranges(range)) {
        NodeId here = from;
        for (int i = 0; i < bytes.length; ++i) {
          const NodeId next = i + 1 == bytes.length ? to : add_node();
          const auto byte = bytes.bytes[static_cast<size_t>(i)];
          at(here).bytes.push_back({.first = byte.first, .last = byte.last, .target = next});
          here = next;
        }
      }
    }
  }

  void connect_sequence(const Pattern& pattern, NodeId from, NodeId to, int depth) {
    if (pattern.parts.empty()) {
      at(from).silent.push_back(to);
    }
    for (size_t i = 0; i < pattern.parts.size(); ++i) {
      const NodeId next = i + 1 == pattern.parts.size() ? to : add_node();
      connect(*pattern.parts[i], from, next, depth + 1);
      from = next;
    }
  }

  /// Copies for what must be and what may be; a loop when there is no upper limit.
  void connect_repeat(const Pattern& pattern, NodeId from, NodeId to, int depth) {
    for (int64_t i = 0; i < pattern.min; ++i) {
      const NodeId next = add_node();
      connect(*pattern.parts[0], from, next, depth + 1);
      from = next;
    }
    if (pattern.max == kUnbounded) {
      const NodeId loop = add_node();
      at(from).silent.push_back(loop);
      connect(*pattern.parts[0], loop, loop, depth + 1);
      at(loop).silent.push_back(to);
      return;
    }
    for (int64_t i = pattern.min; i < pattern.max; ++i) {
      at(from).silent.push_back(to);
      const NodeId next = add_node();
      connect(*pattern.parts[0], from, next, depth + 1);
      from = next;
    }
    at(from).silent.push_back(to);
  }

  Automaton& automaton_;
  const GrammarLimits& limits_;
  int owner_ = 0;
};

Automaton::Automaton(const PatternRules& rules, const GrammarLimits& limits)
    : root_(rules.root), max_depth_(limits.max_depth) {
  AutomatonBuilder builder(*this, limits);
  for (size_t i = 0; i < rules.rules.size(); ++i) {
    starts_.push_back(builder.add_node());
    owners_.back() = static_cast<int>(i);
  }
  for (size_t i = 0; i < rules.rules.size(); ++i) {
    builder.add_rule(*rules.rules[i], static_cast<int>(i));
  }
  mark_tails();
  find_heights(rules);
  refuse_left_recursion(rules);
  find_classes();
}

/// The least number of nested calls that end a rule from each of its nodes, by going back from the
/// ends until nothing changes.
void Automaton::find_heights(const PatternRules& rules) {
  std::vector<std::vector<NodeId>> before(nodes_.size());
  for (size_t id = 0; id < nodes_.size(); ++id) {
    const auto from = static_cast<NodeId>(id);
    for (const NodeId target : nodes_[id].silent) {
      before[static_cast<size_t>(target)].push_back(from);
    }
    for (const ByteEdge& edge : nodes_[id].bytes) {
      before[static_cast<size_t>(edge.target)].push_back(from);
    }
    for (const TokenEdge& edge : nodes_[id].tokens) {
      before[static_cast<size_t>(edge.target)].push_back(from);
    }
    for (const Call& call : nodes_[id].calls) {
      before[static_cast<size_t>(call.back)].push_back(from);
      before[static_cast<size_t>(start(call.rule))].push_back(from);
    }
  }
  std::vector<int> heights(nodes_.size(), kNever);
  const auto height_of = [&](NodeId id) { return heights[static_cast<size_t>(id)]; };
  const auto computed = [&](const Node& node) {
    int best = node.end ? 0 : kNever;
    for (const NodeId target : node.silent) {
      best = std::min(best, height_of(target));
    }
    for (const ByteEdge& edge : node.bytes) {
      best = std::min(best, height_of(edge.target));
    }
    for (const TokenEdge& edge : node.tokens) {
      best = std::min(best, height_of(edge.target));
    }
    for (const Call& call : node.calls) {
      best = std::min(
          best, std::max(height_of(start(call.rule)) + (call.tail ? 0 : 1), height_of(call.back))
      );
    }
    return std::min(best, kNever);
  };
  std::deque<NodeId> work;
  for (size_t id = 0; id < nodes_.size(); ++id) {
    if (nodes_[id].end) {
      work.push_back(static_cast<NodeId>(id));
    }
  }
  while (!work.empty()) {
    const NodeId id = work.front();
    work.pop_front();
    const int height = computed(node(id));
    if (height < height_of(id)) {
      heights[static_cast<size_t>(id)] = height;
      const auto& predecessors = before[static_cast<size_t>(id)];
      work.insert(work.end(), predecessors.begin(), predecessors.end());
    }
  }
  for (size_t i = 0; i < starts_.size(); ++i) {
    if (height_of(starts_[i]) >= kNever) {
      throw Error(
          ErrorKind::kMalformed, fmt::format("no text can ever match the rule '{}'", rules.names[i])
      );
    }
  }
  drop_dead_ends(heights);
  heights_.assign(starts_.size(), 0);
  for (size_t id = 0; id < nodes_.size(); ++id) {
    if (heights[id] < kNever) {
      int& height = heights_[static_cast<size_t>(owners_[id])];
      height = std::max(height, heights[id]);
    }
  }
}

void Automaton::drop_dead_ends(const std::vector<int>& heights) {
  const auto dead = [&](NodeId id) { return heights[static_cast<size_t>(id)] >= kNever; };
  for (Node& node : nodes_) {
    std::erase_if(node.silent, dead);
    std::erase_if(node.bytes, [&](const ByteEdge& edge) { return dead(edge.target); });
    std::erase_if(node.tokens, [&](const TokenEdge& edge) { return dead(edge.target); });
    std::erase_if(node.calls, [&](const Call& call) { return dead(call.back); });
  }
}

/// Calls behind which nothing but the end can come need no place to come back to.
void Automaton::mark_tails() {
  for (Node& node : nodes_) {
    for (Call& call : node.calls) {
      NodeId back = call.back;
      for (int hops = 0; hops < 64; ++hops) {
        const Node& next = nodes_[static_cast<size_t>(back)];
        const bool plain = next.bytes.empty() && next.tokens.empty() && next.calls.empty();
        call.tail = plain && next.end && next.silent.empty();
        if (!plain || next.silent.size() != 1 || next.end) {
          break;
        }
        back = next.silent.front();
      }
    }
  }
}

std::vector<bool> Automaton::nullable_rules() const {
  std::vector<bool> nullable(starts_.size(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t rule = 0; rule < starts_.size(); ++rule) {
      if (nullable[rule]) {
        continue;
      }
      std::vector<NodeId> work = {starts_[rule]};
      std::unordered_set<NodeId> seen;
      while (!work.empty() && !nullable[rule]) {
        const NodeId id = work.back();
        work.pop_back();
        if (!seen.insert(id).second) {
          continue;
        }
        nullable[rule] = node(id).end;
        work.insert(work.end(), node(id).silent.begin(), node(id).silent.end());
        for (const Call& call : node(id).calls) {
          if (nullable[static_cast<size_t>(call.rule)]) {
            work.push_back(call.back);
          }
        }
      }
      changed = changed || nullable[rule];
    }
  }
  return nullable;
}

void Automaton::refuse_left_recursion(const PatternRules& rules) const {
  const std::vector<bool> nullable = nullable_rules();
  std::vector<std::vector<int>> first_calls(starts_.size());
  for (size_t rule = 0; rule < starts_.size(); ++rule) {
    std::vector<NodeId> work = {starts_[rule]};
    std::unordered_set<NodeId> seen;
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!seen.insert(id).second) {
        continue;
      }
      work.insert(work.end(), node(id).silent.begin(), node(id).silent.end());
      for (const Call& call : node(id).calls) {
        first_calls[rule].push_back(call.rule);
        if (nullable[static_cast<size_t>(call.rule)]) {
          work.push_back(call.back);
        }
      }
    }
  }
  // A rule that reaches itself by first calls.
  for (size_t rule = 0; rule < starts_.size(); ++rule) {
    std::vector<int> work = first_calls[rule];
    std::vector<bool> seen(starts_.size(), false);
    while (!work.empty()) {
      const int next = work.back();
      work.pop_back();
      if (next == static_cast<int>(rule)) {
        throw Error(
            ErrorKind::kUnsupported,
            fmt::format(
                "the rule '{}' is left-recursive: it calls itself before it reads anything",
                rules.names[rule]
            )
        );
      }
      if (!seen[static_cast<size_t>(next)]) {
        seen[static_cast<size_t>(next)] = true;
        const auto& more = first_calls[static_cast<size_t>(next)];
        work.insert(work.end(), more.begin(), more.end());
      }
    }
  }
}

void Automaton::find_classes() {
  std::array<bool, 257> border{};
  border[0] = true;
  for (const Node& node : nodes_) {
    for (const ByteEdge& edge : node.bytes) {
      border[edge.first] = true;
      border[static_cast<size_t>(edge.last) + 1] = true;
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (border[byte]) {
      class_bytes_.push_back(static_cast<uint8_t>(byte));
      class_sizes_.push_back(0);
    }
    classes_[byte] = static_cast<uint8_t>(class_bytes_.size() - 1);
    ++class_sizes_.back();
  }
  class_count_ = static_cast<int>(class_bytes_.size());
}

}  // namespace octet
