// The flags of the commands that make and judge files: convert, quantize, imatrix, compare. Beside
// arguments.cpp the only place that knows CLI11. Called by arguments.cpp alone.
#pragma once

#include "octet/cli/options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace octet::cli {

void add_convert(CLI::App& app, ConvertArguments& convert);
void add_quantize(CLI::App& app, QuantizeArguments& quantize);
void add_imatrix(CLI::App& app, ImatrixArguments& imatrix);
void add_compare(CLI::App& app, CompareArguments& compare);

}  // namespace octet::cli
