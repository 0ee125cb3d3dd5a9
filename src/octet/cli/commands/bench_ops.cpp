// octet bench ops: hands over to octet-bench-ops, a program of its own, so that octet itself does
// not need google benchmark.
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"

namespace octet::cli {

int bench_ops(const std::vector<std::string>& flags) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "octet-bench-ops").string();
  std::vector<std::string> command = {program};
  command.insert(command.end(), flags.begin(), flags.end());
  std::vector<char*> pointers;
  pointers.reserve(command.size() + 1);
  for (std::string& argument : command) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  const int failure = errno;  // execv returns only then
  throw Error(
      failure == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo,
      fmt::format(
          "cannot run {}: {}; where libbenchmark-dev is installed, `cmake --build --preset release "
          "--target octet-bench-ops` builds it beside octet",
          program,
          std::generic_category().message(failure)
      )
  );
}

}  // namespace octet::cli
