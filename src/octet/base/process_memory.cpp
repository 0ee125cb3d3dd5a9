#include "octet/base/process_memory.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <system_error>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

/// A line "<name>:   <number> kB" of /proc/self/status, in bytes.
int64_t status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.size() <= name.size() || line.compare(0, name.size(), name) != 0 ||
        line[name.size()] != ':') {
      continue;
    }
    const size_t begin = line.find_first_of("0123456789");
    int64_t kilobytes = 0;
    if (begin != std::string::npos) {
      std::from_chars(line.data() + begin, line.data() + line.size(), kilobytes);
    }
    return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

int64_t resident_bytes() {
  return status_bytes("VmRSS");
}

int64_t resident_anonymous_bytes() {
  return status_bytes("RssAnon");
}

int64_t peak_resident_bytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

int64_t locked_bytes() {
  return status_bytes("VmLck");
}

void lock_process_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
    const std::string reason = std::generic_category().message(errno);
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format(
            "the system refuses to lock memory: {}; raise the limit (ulimit -l) or leave out "
            "--mlock",
            reason
        )
    );
  }
}

}  // namespace octet
