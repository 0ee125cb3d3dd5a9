#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/thread_pool.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/export_report.h"
#include "octet/formats/checkpoint_files.h"
#include "octet/formats/open_checkpoint.h"
#include "octet/quantize/gguf_export.h"
#include "octet/quantize/hf_export.h"
#include "octet/quantize/output_place.h"
#include "octet/quantize/portable_metadata.h"

namespace octet::cli {
namespace {

bool writes_gguf(const ConvertArguments& arguments) {
  switch (arguments.format) {
    case ConvertFormat::kGguf:
      return true;
    case ConvertFormat::kSafetensors:
      return false;
    case ConvertFormat::kByName:
      break;
  }
  return std::filesystem::path(arguments.output).extension() == ".gguf";
}

}  // namespace

int convert(const ConvertArguments& arguments) {
  const auto source = open_checkpoint(arguments.input, UnusedTensors::kKeep);
  const auto tokenizer_source =
      arguments.tokenizer.empty() ? nullptr : open_checkpoint(arguments.tokenizer);
  const bool gguf = writes_gguf(arguments);
  if (gguf && arguments.dequantize) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--dequantize is for safetensors, GGUF holds every type; leave it out, or use `octet "
        "quantize --type BF16`"
    );
  }
  const CheckpointPlan plan =
      gguf
          ? plan_gguf_copy(*source)
          : plan_hf_copy(*source, arguments.dequantize ? BlockTypes::kDecode : BlockTypes::kRefuse);
  prepare_output(
      all_inputs({source, tokenizer_source}, {}),
      arguments.output,
      planned_bytes(plan),
      arguments.force ? ExistingOutput::kReplace : ExistingOutput::kRefuse,
      gguf ? OutputKind::kFile : OutputKind::kFolder
  );
  PortableMetadata portable = gather_metadata(
      *source, tokenizer_source.get(), gguf ? TokenizerNeed::kRequired : TokenizerNeed::kOptional
  );
  if (!portable.metadata.contains("general.file_type")) {
    portable.metadata.set("general.file_type", prevailing_file_type(plan));
  }
  portable.metadata.set("general.quantization_version", uint32_t{2});
  ThreadPool pool(arguments.threads > 0 ? arguments.threads : ThreadPool::usable_cpus());
  ExportReport report(
      arguments.quiet ? ExportReport::Speech::kQuiet : ExportReport::Speech::kSpeak
  );
  const ExportRequest request{*source, portable.metadata, plan, arguments.output};
  if (gguf) {
    write_gguf_checkpoint(request, pool, report.on_progress());
  } else {
    write_hf_checkpoint(request, arguments.shard_bytes, pool, report.on_progress());
  }
  report.print_summary(plan, arguments.output);
  return 0;
}

}  // namespace octet::cli
