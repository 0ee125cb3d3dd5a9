#include "octet/engine/reply_stream.h"

#include <utility>

namespace octet {

std::optional<ReplyStreamEvent> ReplyStream::try_next() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) {
    return std::nullopt;
  }
  ReplyStreamEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

ReplyStreamEvent ReplyStream::next() {
  std::unique_lock lock(mutex_);
  readable_.wait(lock, [this] { return !events_.empty(); });
  ReplyStreamEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void ReplyStream::push(ReplyStreamEvent event) {
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  readable_.notify_one();
  if (on_event_) {
    on_event_();
  }
}

}  // namespace octet
