// The command line: argv to options. The only place that knows CLI11. Flags are the familiar ones
// of llama.cpp where the meaning is the same, `-md` included. Not for checks that need files or
// models.
#pragma once

#include <span>
#include <string>
#include <variant>

#include "octet/cli/options.h"

namespace octet::cli {

/// --help or --version: what to print instead of running.
struct Notice {
  std::string text;
};

using Command = std::variant<
    Notice,
    RunArguments,
    ChatArguments,
    InspectArguments,
    VerifyArguments,
    ConvertArguments,
    QuantizeArguments,
    ImatrixArguments,
    CompareArguments,
    SynthArguments,
    DraftHeadArguments,
    BenchArguments,
    GenerateDataArguments,
    EvalArguments,
    ServeArguments>;

/// `arguments` without the program's name. Throws Error(kInvalidArgument) in one sentence for
/// anything it does not know.
Command parse_arguments(std::span<const std::string> arguments);

}  // namespace octet::cli
