// Which sanitizer this test binary runs under, for tests of what only the bare process shows.
#pragma once

namespace octet::test {

/// AddressSanitizer and ThreadSanitizer keep memory of their own, the first also freed blocks, and
/// make mlock do nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kKeepsShadowMemory = true;
#else
inline constexpr bool kKeepsShadowMemory = false;
#endif

}  // namespace octet::test
