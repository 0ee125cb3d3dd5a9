// Waiting for another thread's counter: a short spin, then sleep in the kernel. Not for locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace octet {

/// Returns the value of `word` once it differs from `old`. Spins for a bounded time first where
/// `spin` says so, which only pays where the thread that is waited for has a CPU of its own.
/// Whoever changes `word` notifies it.
uint32_t wait_for_change(const std::atomic<uint32_t>& word, uint32_t old, bool spin);

}  // namespace octet
