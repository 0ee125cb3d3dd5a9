// Two results of `octet bench cycle --json` beside each other. Reads files and formats; judges
// nothing. Invariant: what one of the two has and the other lacks, or says otherwise, is told.
#pragma once

#include <string>

namespace octet::cli {

/// What was measured and where the two differ in it; then for each quantity of both old ms, new ms,
/// new / old and both ratios to the floor; then the quantities that one of them lacks. Throws Error
/// naming the file that is no such result or has a row without a time, and when no quantity is in
/// both.
std::string compare_bench_files(const std::string& old_path, const std::string& new_path);

}  // namespace octet::cli
