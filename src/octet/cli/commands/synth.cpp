#include <chrono>

#include <fmt/format.h>

#include "octet/cli/commands/commands.h"
#include "octet/cli/synth/write_checkpoint.h"
#include "octet/cli/terminal.h"

namespace octet::cli {

int synth(const SynthArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  Progress progress(!arguments.quiet);
  const int64_t bytes = write_synthetic_checkpoint(arguments, [&](const SynthProgress& at) {
    progress.show(fmt::format(
        "Writing {} of {}: {}", format_bytes(at.done_bytes), format_bytes(at.total_bytes), at.tensor
    ));
  });
  progress.clear();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!arguments.quiet) {
    fmt::print(
        "{}: {} of random weights in {:.1f} s\n", arguments.output, format_bytes(bytes), seconds
    );
  }
  return 0;
}

}  // namespace octet::cli
