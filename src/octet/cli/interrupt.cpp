#include "octet/cli/interrupt.h"

#include <csignal>

namespace octet::cli {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set in a signal handler");
struct sigaction g_previous {};

void on_interrupt(int /*signal*/) {
  g_interrupted.store(true, std::memory_order_relaxed);
}

}  // namespace

InterruptGuard::InterruptGuard(Second second) {
  reset();
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = second == Second::kEndsProgram ? static_cast<int>(SA_RESETHAND) : 0;
  sigaction(SIGINT, &action, &g_previous);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &g_previous, nullptr);
}

void InterruptGuard::reset() {
  g_interrupted.store(false);
}

const std::atomic<bool>* InterruptGuard::flag() const {
  return &g_interrupted;
}

}  // namespace octet::cli
