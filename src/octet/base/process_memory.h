// What the operating system says about this process's memory, and the wish to keep it in place. Not
// for allocating (page_memory.h). Invariant: figures are the system's own, in bytes; 0 where it
// gives none.
#pragma once

#include <cstdint>

namespace octet {

/// Resident now: all of it, and the part that no file backs.
int64_t resident_bytes();
int64_t resident_anonymous_bytes();
/// Largest resident size so far.
int64_t peak_resident_bytes();
/// Locked into memory now.
int64_t locked_bytes();

/// Keeps every page that is resident now, or will be later, from being paged out. Throws
/// Error(kResourceExhausted) saying how to raise the limit. Call it after loading: pages of files
/// that are locked cannot be dropped.
void lock_process_memory();

}  // namespace octet
