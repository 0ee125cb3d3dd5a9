#include "octet/text/stop_matcher.h"

#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

StopStrings::StopStrings(std::span<const std::string> strings) : nodes_(1) {
  if (strings.size() > static_cast<size_t>(kMaxCount)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("{} stop strings given, at most {} are allowed", strings.size(), kMaxCount)
    );
  }
  int64_t total_bytes = 0;
  for (size_t i = 0; i < strings.size(); ++i) {
    if (strings[i].empty()) {
      throw Error(ErrorKind::kInvalidArgument, fmt::format("stop string {} is empty", i));
    }
    total_bytes += static_cast<int64_t>(strings[i].size());
    if (total_bytes > kMaxTotalBytes) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("the stop strings have more than {} bytes together", kMaxTotalBytes)
      );
    }
    insert(strings[i], static_cast<int32_t>(i));
  }
  link_fallbacks();
}

void StopStrings::insert(std::string_view string, int32_t index) {
  int32_t node = 0;
  for (const char character : string) {
    const auto byte = static_cast<uint8_t>(character);
    int32_t below = child(node, byte);
    if (below < 0) {
      below = static_cast<int32_t>(nodes_.size());
      Node& parent = nodes_[static_cast<size_t>(node)];
      const Node added = {
          .byte = byte, .depth = parent.depth + 1, .next_sibling = parent.first_child};
      parent.first_child = below;
      nodes_.push_back(added);
    }
    node = below;
  }
  int32_t& match = nodes_[static_cast<size_t>(node)].match;
  match = match < 0 ? index : match;
  lengths_.push_back(static_cast<int32_t>(string.size()));
}

void StopStrings::link_fallbacks() {
  // Breadth first: the fallback of a node is shallower, so it is final when it is needed.
  std::vector<int32_t> level = {0};
  while (!level.empty()) {
    std::vector<int32_t> below;
    for (const int32_t parent : level) {
      for (int32_t node = nodes_[static_cast<size_t>(parent)].first_child; node >= 0;
           node = nodes_[static_cast<size_t>(node)].next_sibling) {
        Node& current = nodes_[static_cast<size_t>(node)];
        current.fallback =
            parent == 0 ? 0 : next(nodes_[static_cast<size_t>(parent)].fallback, current.byte);
        if (current.match < 0) {
          current.match = nodes_[static_cast<size_t>(current.fallback)].match;
        }
        below.push_back(node);
      }
    }
    level = std::move(below);
  }
}

int32_t StopStrings::child(int32_t node, uint8_t byte) const {
  int32_t below = nodes_[static_cast<size_t>(node)].first_child;
  while (below >= 0 && nodes_[static_cast<size_t>(below)].byte != byte) {
    below = nodes_[static_cast<size_t>(below)].next_sibling;
  }
  return below;
}

int32_t StopStrings::next(int32_t node, uint8_t byte) const {
  for (;; node = nodes_[static_cast<size_t>(node)].fallback) {
    const int32_t below = child(node, byte);
    if (below >= 0) {
      return below;
    }
    if (node == 0) {
      return 0;
    }
  }
}

StopMatcher::StopMatcher(std::shared_ptr<const StopStrings> strings)
    : strings_(std::move(strings)) {}

bool StopMatcher::advance(std::string_view bytes) {
  if (!strings_) {
    seen_bytes_ += static_cast<int64_t>(bytes.size());
    return false;
  }
  for (size_t i = 0; i < bytes.size() && !matched(); ++i) {
    node_ = strings_->next(node_, static_cast<uint8_t>(bytes[i]));
    ++seen_bytes_;
    match_ = strings_->nodes_[static_cast<size_t>(node_)].match;
    if (matched()) {
      match_start_ = seen_bytes_ - strings_->lengths_[static_cast<size_t>(match_)];
    }
  }
  return matched();
}

int64_t StopMatcher::publishable_bytes() const {
  if (matched()) {
    return match_start_;
  }
  return strings_ ? seen_bytes_ - strings_->nodes_[static_cast<size_t>(node_)].depth : seen_bytes_;
}

}  // namespace octet
