// Ctrl-C as a request to end the reply, not the program. While a guard lives, SIGINT sets its flag.
// Invariant: at most one guard lives at a time, and the previous handler is back after it.
#pragma once

#include <atomic>

namespace octet::cli {

class InterruptGuard {
 public:
  /// What a second SIGINT does: end the program as usual, or the same as the first.
  enum class Second { kEndsProgram, kSame };

  explicit InterruptGuard(Second second = Second::kEndsProgram);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  /// As new: nobody has interrupted.
  void reset();
  const std::atomic<bool>* flag() const;
};

}  // namespace octet::cli
