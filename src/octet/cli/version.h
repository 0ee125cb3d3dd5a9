// The name and version that the program calls itself by. Set by CMake, defined in arguments.cpp.
// Invariant: the same everywhere it is shown.
#pragma once

namespace octet::cli {

extern const char* const kVersion;  // "octet 1.2.3"

}  // namespace octet::cli
