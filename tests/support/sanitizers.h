// What this test binary runs under, a sanitizer or an emulator, for tests of what only the bare
// process shows.
#pragma once

#include <cstdlib>

namespace octet::test {

/// AddressSanitizer keeps shadow memory and freed blocks, and makes mlock do nothing.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif

/// An emulator keeps tables of its own for what the program maps. scripts/run_tests.sh says so.
inline bool under_emulator() {
  return std::getenv("OCTET_TEST_EMULATED") != nullptr;
}

}  // namespace octet::test
