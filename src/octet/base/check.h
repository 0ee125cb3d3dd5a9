// OCTET_CHECK(condition): states what must hold unless octet has a bug; prints the place and
// aborts. Never for user input (throw Error instead). Always on, also in Release: use it outside
// inner loops.
#pragma once

namespace octet {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace octet

#define OCTET_CHECK(condition)                         \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::octet::check_failed(#condition, __FILE__, __LINE__))
