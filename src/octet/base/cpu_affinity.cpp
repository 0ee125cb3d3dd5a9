#include "octet/base/cpu_affinity.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sched.h>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"

namespace octet {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw Error(
      ErrorKind::kInvalidArgument,
      fmt::format("'{}' is no list of CPUs; expected numbers below 1024, as in 0,2-5", text)
  );
}

std::optional<int> cpu_number(std::string_view text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool good = error == std::errc() && stop == end && number >= 0 && number < CPU_SETSIZE;
  return good ? std::optional(number) : std::nullopt;
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::set<int> cpus;
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t dash = part.find('-');
    const std::optional<int> first = cpu_number(part.substr(0, dash));
    const std::optional<int> last =
        dash == std::string_view::npos ? first : cpu_number(part.substr(dash + 1));
    if (!first || !last || *first > *last) {
      refuse(text);
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.insert(cpu);
    }
    if (comma == std::string_view::npos) {
      return {cpus.begin(), cpus.end()};
    }
    rest.remove_prefix(comma + 1);
  }
}

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

void run_on_cpus(const std::vector<int>& cpus) {
  const std::vector<int> allowed = allowed_cpus();
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) {
    if (!std::binary_search(allowed.begin(), allowed.end(), cpu)) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format(
              "CPU {} is not one that this process may use; it may use {}",
              cpu,
              fmt::join(allowed, ", ")
          )
      );
    }
    CPU_SET(cpu, &mask);
  }
  if (sched_setaffinity(0, sizeof(mask), &mask) != 0) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("the system refused to run octet on CPUs {}", fmt::join(cpus, ", "))
    );
  }
}

}  // namespace octet
