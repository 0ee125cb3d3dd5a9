#include <span>

#include <fmt/format.h>

#include "octet/base/json_writer.h"
#include "octet/formats/atomic_file.h"
#include "octet/quantize/output_place.h"
#include "octet/train/corpus/topics.h"
#include "octet/train/options.h"

namespace octet::train {

int write_corpus(const CorpusArguments& arguments) {
  prepare_output(
      {}, arguments.output, 0, arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse
  );
  AtomicFile file(arguments.output);
  for (int64_t i = 0; i < arguments.dialogues; ++i) {
    JsonWriter json;
    json.begin_object();
    json.member("text", write_dialogue(arguments.seed, i, arguments.thinking_share));
    json.end_object();
    const std::string line = json.text() + "\n";
    file.write(std::as_bytes(std::span(line)));
  }
  file.finish();
  fmt::print("{}: {} dialogues\n", arguments.output, arguments.dialogues);
  return 0;
}

}  // namespace octet::train
