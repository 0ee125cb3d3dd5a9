// Finds stop strings in a reply, across the borders of tokens, and says how much of the reply may
// be published. Works on the raw bytes of tokens. Not for stop tokens (Tokenizer::is_stop). A
// matcher is a small value: copy it, advance the copy token by token inside a block, and keep the
// copy only when the block is committed. Invariants: no published byte ever belongs to a stop
// string; the match that ends first wins, and of those that end together the longest.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

/// The compiled stop strings of one request (an Aho-Corasick automaton). Immutable, shared by the
/// copies of a matcher.
class StopStrings {
 public:
  /// Throws Error(kInvalidArgument) for an empty string, more than kMaxCount strings or more than
  /// kMaxTotalBytes together.
  explicit StopStrings(std::span<const std::string> strings);

  static constexpr int kMaxCount = 256;
  static constexpr int64_t kMaxTotalBytes = int64_t{64} * 1024;

 private:
  friend class StopMatcher;

  struct Node {
    uint8_t byte = 0;
    int32_t depth = 0;         // bytes from the root
    int32_t first_child = -1;  // children form a list
    int32_t next_sibling = -1;
    int32_t fallback = 0;  // the longest proper suffix that is also a node
    int32_t match = -1;    // longest stop string that ends here: its index, or -1
  };

  void insert(std::string_view string, int32_t index);
  void link_fallbacks();
  int32_t child(int32_t node, uint8_t byte) const;
  int32_t next(int32_t node, uint8_t byte) const;

  std::vector<Node> nodes_;
  std::vector<int32_t> lengths_;  // of the stop strings
};

class StopMatcher {
 public:
  /// Never matches, holds nothing back.
  StopMatcher() = default;
  explicit StopMatcher(std::shared_ptr<const StopStrings> strings);

  /// Takes the next bytes of the reply. Returns matched(); after a match further bytes are ignored.
  bool advance(std::string_view bytes);

  bool matched() const { return match_ >= 0; }
  /// Index of the stop string that matched, -1 before.
  int match() const { return match_; }
  /// Where the stop string starts, in bytes from the start of the reply; only after a match.
  int64_t match_start() const { return match_start_; }

  /// Bytes of the reply that may be published: all but a tail that may turn out to begin a stop
  /// string; all before the match once there is one. Never shrinks.
  int64_t publishable_bytes() const;
  /// Bytes taken so far (up to the end of the match).
  int64_t seen_bytes() const { return seen_bytes_; }

 private:
  std::shared_ptr<const StopStrings> strings_;
  int32_t node_ = 0;
  int match_ = -1;
  int64_t match_start_ = 0;
  int64_t seen_bytes_ = 0;
};

}  // namespace octet
