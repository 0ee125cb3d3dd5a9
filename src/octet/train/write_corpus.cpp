#include <span>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/json_writer.h"
#include "octet/formats/atomic_file.h"
#include "octet/quantize/output_place.h"
#include "octet/train/corpus/topics.h"
#include "octet/train/corpus/withheld.h"
#include "octet/train/options.h"

namespace octet::train {
namespace {

constexpr int64_t kMostLeftOut = 20;  // for each that is written

}  // namespace

int write_corpus(const CorpusArguments& arguments) {
  prepare_output(
      arguments.withheld_files,
      arguments.output,
      0,
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse
  );
  Withheld withheld;
  for (const std::string& path : arguments.withheld_files) {
    withhold_file(path, withheld);
  }
  AtomicFile file(arguments.output);
  int64_t left_out = 0;
  for (int64_t written = 0; written < arguments.dialogues;) {
    const std::string text =
        write_dialogue(arguments.seed, written + left_out, arguments.thinking_share);
    if (withheld.holds(text)) {
      if (++left_out > kMostLeftOut * arguments.dialogues) {
        throw Error(
            ErrorKind::kInvalidArgument,
            "--withhold: hardly a dialogue is left that shares no sum with those; withhold fewer"
        );
      }
      continue;
    }
    ++written;
    JsonWriter json;
    json.begin_object();
    json.member("text", text);
    json.end_object();
    const std::string line = json.text() + "\n";
    file.write(std::as_bytes(std::span(line)));
  }
  file.finish();
  fmt::print("{}: {} dialogues", arguments.output, arguments.dialogues);
  if (!arguments.withheld_files.empty()) {
    fmt::print(
        "; {} left out for {} withheld ones and their {} sums",
        left_out,
        withheld.dialogues(),
        withheld.sums()
    );
  }
  fmt::print("\n");
  return 0;
}

}  // namespace octet::train
