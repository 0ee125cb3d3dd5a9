// Ctrl-C as a request to end the reply, not the program. While a guard lives, the first SIGINT sets
// its flag; a second one before the flag was read ends the program as usual. Invariant: at most one
// guard lives at a time, and the previous handler is back after it.
#pragma once

#include <atomic>

namespace octet::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>* flag() const;
};

}  // namespace octet::cli
