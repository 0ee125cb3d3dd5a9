#include "octet/quantize/gguf_export.h"

#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "octet/formats/gguf_dialect.h"
#include "octet/formats/gguf_writer.h"
#include "octet/quantize/transcoder.h"

namespace octet {
namespace {

constexpr std::string_view kWeightSuffix = ".weight";

/// The scales that NVFP4 has outside its blocks.
struct OuterScales {
  std::string base;            // the weight's name without ".weight"
  std::optional<float> scale;  // nullopt: 1, which is not written
  std::optional<float> input;
};

OuterScales outer_scales(const PlannedTensor& planned) {
  const LogicalTensor& tensor = *planned.source;
  OuterScales scales;
  scales.base = tensor.name.substr(0, tensor.name.size() - kWeightSuffix.size());
  if (planned.dtype == DType::kNVFP4 && is_exact_copy(tensor, DType::kNVFP4)) {
    scales.scale = tensor.scale == 1.0F ? std::nullopt : std::optional<float>(tensor.scale);
    scales.input = tensor.input_scale;
  }
  return scales;
}

std::vector<TensorSpec> tensor_specs(const CheckpointPlan& plan) {
  std::vector<TensorSpec> specs;
  for (const PlannedTensor& planned : plan) {
    specs.push_back({planned.source->name, planned.dtype, planned.source->shape});
    const OuterScales scales = outer_scales(planned);
    if (scales.scale) {
      specs.push_back({scales.base + ".scale", DType::kF32, {1}});
    }
    if (scales.input) {
      specs.push_back({scales.base + ".input_scale", DType::kF32, {1}});
    }
  }
  return specs;
}

void write_number(GgufWriter& writer, const std::string& name, float value) {
  writer.write_tensor(name, std::as_bytes(std::span(&value, 1)));
}

}  // namespace

void write_gguf_checkpoint(
    const ExportRequest& request, ThreadPool& pool, const OnExportProgress& on_progress
) {
  GgufWriter writer(request.path, gguf_metadata(request.metadata), tensor_specs(request.plan));
  Transcoder transcoder(request.source, pool);
  ExportMeter meter(request.plan, on_progress);
  for (const PlannedTensor& planned : request.plan) {
    const LogicalTensor& tensor = *planned.source;
    writer.begin_tensor(tensor.name);
    transcoder.transcode(
        tensor,
        {planned.dtype, planned.importance},
        [&](std::span<const std::byte> bytes, int64_t rows) {
          writer.write(bytes);
          meter.add_rows(tensor, rows);
        }
    );
    writer.end_tensor();
    const OuterScales scales = outer_scales(planned);
    if (scales.scale) {
      write_number(writer, scales.base + ".scale", *scales.scale);
    }
    if (scales.input) {
      write_number(writer, scales.base + ".input_scale", *scales.input);
    }
  }
  writer.finish();
}

}  // namespace octet
