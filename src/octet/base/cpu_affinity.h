// Which CPUs a process runs on: lists like "0,2-5" and the mask of the operating system. On boards
// with large and small cores a parallel region is as slow as its slowest core. Not about how many
// CPUs there are (cpu_quota.h). Invariant: a list that cannot be had whole is refused.
#pragma once

#include <string_view>
#include <vector>

namespace octet {

/// CPUs of a list such as "0,2-5", ascending, each once. Throws Error(kInvalidArgument) on text
/// that is no such list or names a CPU above 1023.
std::vector<int> parse_cpu_list(std::string_view text);

/// CPUs that the calling thread may run on, ascending.
std::vector<int> allowed_cpus();

/// The calling thread, and whatever it starts later, runs on these CPUs alone. Throws
/// Error(kInvalidArgument) when the list is empty or one of them is not among allowed_cpus().
void run_on_cpus(const std::vector<int>& cpus);

}  // namespace octet
