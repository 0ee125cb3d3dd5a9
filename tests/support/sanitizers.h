// Which sanitizer this test binary runs under, for tests of what only the bare process shows.
#pragma once

namespace octet::test {

/// AddressSanitizer keeps shadow memory and freed blocks, and makes mlock do nothing.
#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kUnderAddressSanitizer = true;
#else
inline constexpr bool kUnderAddressSanitizer = false;
#endif

}  // namespace octet::test
