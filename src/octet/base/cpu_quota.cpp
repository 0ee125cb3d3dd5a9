#include "octet/base/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace octet {
namespace {

std::string read_text(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The integer that `text` starts with; nullopt when there is none.
std::optional<int64_t> leading_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ratio(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) {
    return std::nullopt;
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void tighten(std::optional<double>& limit, std::optional<double> other) {
  if (other && (!limit || *other < *limit)) {
    limit = other;
  }
}

/// Quotas of `path` and all its ancestors below `mount`. Inside a container the path may be that of
/// the host and not exist here; the mount's own root then carries the container's quota.
template <typename ReadQuota>
std::optional<double> tightest(const std::string& mount, std::string path, ReadQuota read_quota) {
  std::optional<double> limit = read_quota(mount);
  while (!path.empty() && path != "/") {
    tighten(limit, read_quota(mount + path));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return limit;
}

std::optional<double> version_2_quota(const std::string& folder) {
  return parse_cpu_max(read_text(folder + "/cpu.max"));
}

std::optional<double> version_1_quota(const std::string& folder) {
  return ratio(
      leading_integer(read_text(folder + "/cpu.cfs_quota_us")),
      leading_integer(read_text(folder + "/cpu.cfs_period_us"))
  );
}

bool lists_cpu_controller(std::string_view controllers) {
  while (!controllers.empty()) {
    const size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") {
      return true;
    }
    controllers = comma == std::string_view::npos ? "" : controllers.substr(comma + 1);
  }
  return false;
}

int affinity_cpus() {
  // The mask's size is the kernel's choice; grow until it fits.
  for (size_t cpus = 1024; cpus <= (size_t{1} << 20); cpus *= 2) {
    std::vector<unsigned long> words(cpus / (8 * sizeof(unsigned long)));
    const size_t bytes = words.size() * sizeof(unsigned long);
    auto* mask = reinterpret_cast<cpu_set_t*>(words.data());
    if (sched_getaffinity(0, bytes, mask) == 0) {
      return CPU_COUNT_S(bytes, mask);
    }
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<double> parse_cpu_max(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) {
    return std::nullopt;
  }
  return ratio(leading_integer(text), leading_integer(text.substr(space + 1)));
}

std::optional<double> cgroup_cpu_quota(const std::string& root, std::string_view membership) {
  std::optional<double> limit;
  std::istringstream lines{std::string(membership)};
  for (std::string line; std::getline(lines, line);) {  // "id:controllers:path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      tighten(limit, tightest(root, path, version_2_quota));
    } else if (lists_cpu_controller(controllers)) {
      for (const std::string& mount : {controllers, std::string("cpu")}) {
        tighten(limit, tightest(fmt::format("{}/{}", root, mount), path, version_1_quota));
      }
    }
  }
  return limit;
}

int usable_cpu_count() {
  int cpus = affinity_cpus();
  const std::optional<double> quota =
      cgroup_cpu_quota("/sys/fs/cgroup", read_text("/proc/self/cgroup"));
  if (quota && *quota < cpus) {
    cpus = static_cast<int>(*quota);
  }
  return std::max(cpus, 1);
}

}  // namespace octet
