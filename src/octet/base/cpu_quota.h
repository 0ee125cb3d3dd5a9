// How many CPUs the operating system lets this process use: the affinity mask and the control
// group's CPU quota (version 1 and 2). Not about what the CPUs can do (cpu_features.h).
// A file that is missing or unreadable is no limit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octet {

/// CPUs granted by the text of a version 2 "cpu.max" ("150000 100000" is 1.5); nullopt for "max" or
/// malformed text.
std::optional<double> parse_cpu_max(std::string_view text);

/// The tightest quota among the process's control groups and their ancestors. `root` is where the
/// hierarchies are mounted ("/sys/fs/cgroup"), `membership` the text of /proc/self/cgroup.
std::optional<double> cgroup_cpu_quota(const std::string& root, std::string_view membership);

/// The smaller of affinity mask and quota, the quota rounded down (a thread more than the quota
/// pays for is stopped in the middle of a parallel region, with all others waiting for it); at
/// least 1.
int usable_cpu_count();

}  // namespace octet
