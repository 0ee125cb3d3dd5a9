// What another program answers: started without a shell, given a text, its standard output taken.
// Invariant: when it returns or throws, the program has ended and is reaped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace octet::cli {

struct ProgramLimits {
  int timeout_ms = 60'000;
  size_t output_bytes = size_t{1} << 20;
};

/// `command`: program (looked for in PATH) and arguments. Its standard error is ours. Throws Error
/// when it cannot be started, does not end in time, says too much or ends with anything but 0.
std::string program_output(
    const std::vector<std::string>& command, std::string_view input, ProgramLimits limits = {}
);

}  // namespace octet::cli
