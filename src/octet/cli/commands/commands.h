// The commands of the program: options in, exit code out. Each prints its own results; errors are
// thrown and become one sentence in main.cpp. Translation only: what a command does is done by the
// modules below cli/.
#pragma once

#include <string>
#include <vector>

#include "octet/cli/options.h"

namespace octet::cli {

int run(const RunArguments& arguments);
int chat(const ChatArguments& arguments);
int inspect(const InspectArguments& arguments);
int verify(const VerifyArguments& arguments);
int convert(const ConvertArguments& arguments);
int quantize(const QuantizeArguments& arguments);
int imatrix(const ImatrixArguments& arguments);
int compare(const CompareArguments& arguments);
int synth(const SynthArguments& arguments);
int draft_head(const DraftHeadArguments& arguments);
int bench_policy(const PolicyBenchArguments& arguments);  // one of bench's
int bench_ops(const std::vector<std::string>& flags);     // another
int bench(const BenchArguments& arguments);
int generate_data(const GenerateDataArguments& arguments);
int eval_replay(const EvalReplayArguments& arguments);  // one of eval's
int eval_plan(const EvalPlanArguments& arguments);      // another
int eval(const EvalArguments& arguments);
int serve(const ServeArguments& arguments);

}  // namespace octet::cli
