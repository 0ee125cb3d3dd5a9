#include "octet/quantize/calibrate_nvfp4.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/tensor_names.h"
#include "octet/quantize/gptq.h"
#include "octet/quantize/nvfp4_weights.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/nvfp4_activations.h"
#include "octet/tensor/types/float_formats.h"

namespace octet {
namespace {

constexpr int64_t kGroup = 16;
/// Rows of a weight that are decoded and rounded together.
constexpr int64_t kPieceRows = 512;
constexpr int64_t kBeforeLayers = -1;

/// Where in the model a weight is used: its layer, or before or after all of them.
int64_t layer_of(const std::string& name) {
  return layer_number(name).value_or(name == "output.weight" ? kAllLayers : kBeforeLayers);
}

bool is_nvfp4(DType dtype) {
  return dtype == DType::kNVFP4 || dtype == DType::kNVFP4ModelOpt;
}

std::string part_name(int64_t layer) {
  return layer == kBeforeLayers ? "fusion"
         : layer == kAllLayers  ? "head"
                                : fmt::format("layer {}", layer);
}

class Calibration {
 public:
  Calibration(CheckpointPlan& plan, const CalibrationRequest& request)
      : request_(request), scales_(request.source, plan, request.pool) {
    for (PlannedTensor& planned : plan) {
      if (planned.dtype != DType::kNVFP4ModelOpt) {
        continue;
      }
      if (is_nvfp4(planned.source->dtype)) {
        rounded_before_.push_back(&planned);
      } else {
        parts_[layer_of(planned.source->name)].push_back(&planned);
      }
    }
  }

  CalibratedWeights run() {
    const auto parts =
        std::ssize(parts_) * (request_.gptq ? 1 : 0) + (request_.input_scales ? 1 : 0);
    int64_t done = 0;
    const auto begin_part = [&](std::string_view name) {
      if (request_.on_part) {
        request_.on_part(name, done++, parts);
      }
    };
    if (request_.input_scales) {
      begin_part("input scales");
      find_input_scales();
      attach_input_scales(rounded_before_);
      for (const PlannedTensor* tensor : rounded_before_) {
        if (request_.gptq && largest_.contains(tensor->source->name)) {
          request_.ops.replace(request_.source, *tensor->source);  // it multiplies as it will later
        }
      }
    }
    // Shared scales come from the weights as they were, also where others of a group are done.
    for (const auto& [layer, planned] : parts_) {
      for (const PlannedTensor* tensor : planned) {
        amax_[tensor->source->name] = scales_.shared_amax(*tensor->source);
      }
    }
    for (const auto& [layer, planned] : parts_) {
      if (request_.gptq) {
        begin_part(part_name(layer));
        round_part(layer, planned);
      } else {
        attach_input_scales(planned);
      }
    }
    return std::move(result_);
  }

 private:
  void find_input_scales() {
    request_.ops.watch_largest();
    request_.run(kAllLayers);
    largest_ = request_.ops.take_largest();
    for (const PlannedTensor* tensor : rounded_before_) {
      find_input_scale(tensor->source->name);
    }
    for (const auto& [layer, planned] : parts_) {
      for (const PlannedTensor* tensor : planned) {
        find_input_scale(tensor->source->name);
      }
    }
  }

  void find_input_scale(const std::string& name) {
    std::optional<float> shared;
    for (const std::string& member : fused_with(name)) {
      const auto found = largest_.find(member);
      if (found != largest_.end()) {
        shared = std::max(shared.value_or(0.0F), found->second);
      }
    }
    if (shared) {  // zeros need some scale that is a number
      input_scales_[name] = (*shared > 0.0F ? *shared : 1.0F) / kNvfp4InputRange;
    }
  }

  std::optional<float> input_scale(const std::string& name) const {
    const auto found = input_scales_.find(name);
    return found == input_scales_.end() ? std::nullopt : std::optional(found->second);
  }

  void attach_input_scales(const std::vector<PlannedTensor*>& planned) {
    for (PlannedTensor* tensor : planned) {
      LogicalTensor& copy = result_.tensors.emplace_back(*tensor->source);
      const std::optional<float> found = input_scale(copy.name);
      if (found) {
        copy.input_scale = found;
      } else {
        result_.unused.push_back(copy.name);
      }
      tensor->source = &copy;
    }
  }

  void round_part(int64_t layer, const std::vector<PlannedTensor*>& planned) {
    CalibrationOps::InputScales watched;
    for (const PlannedTensor* tensor : planned) {
      watched[tensor->source->name] = input_scale(tensor->source->name);
    }
    request_.ops.watch_hessians(std::move(watched));
    request_.run(std::max<int64_t>(layer, 0));
    request_.ops.watch_hessians({});
    for (PlannedTensor* tensor : planned) {
      const LogicalTensor& weight = *tensor->source;
      std::vector<double> hessian = request_.ops.take_hessian(weight.name);
      const bool unused = hessian.empty();
      if (unused) {  // zeros cannot be inverted: plain rounding, in the scales of its group
        hessian.resize(static_cast<size_t>(weight.cols() * weight.cols()));
      }
      const HessianFactor factor(std::move(hessian), dead_columns(weight), request_.pool);
      if (unused) {
        result_.unused.push_back(weight.name);
      } else if (factor.is_identity()) {
        result_.indefinite.push_back(weight.name);
      }
      try {
        tensor->source = &round_weight(weight, factor);
      } catch (Error& error) {
        error.add_context(fmt::format("tensor '{}'", weight.name));
        throw;
      }
      request_.source.drop_pages(weight);
      if (!unused) {
        request_.ops.replace(request_.source, *tensor->source);
      }
    }
  }

  /// Rows [first, first + count) as BF16, the type that ModelOpt exports.
  static std::vector<float> exported_rows(
      const LogicalTensor& weight, int64_t first, int64_t count
  ) {
    std::vector<float> values(static_cast<size_t>(count * weight.cols()));
    decode_rows(weight, first, count, values.data());
    for (float& value : values) {
      value = bf16_to_f32(f32_to_bf16(value));
    }
    return values;
  }

  /// Columns that hold nothing but zeros.
  std::vector<char> dead_columns(const LogicalTensor& weight) const {
    const auto cols = static_cast<size_t>(weight.cols());
    std::vector<char> dead(cols, 1);
    std::mutex mutex;
    request_.pool.for_ranges(weight.rows(), 1, [&](int64_t begin, int64_t end) {
      std::vector<char> own(cols, 1);
      for (int64_t row = begin; row < end; ++row) {
        const std::vector<float> values = exported_rows(weight, row, 1);
        for (size_t c = 0; c < cols; ++c) {
          own[c] = values[c] != 0.0F ? 0 : own[c];
        }
      }
      const std::scoped_lock lock(mutex);
      for (size_t c = 0; c < cols; ++c) {
        dead[c] = own[c] == 0 ? 0 : dead[c];
      }
    });
    return dead;
  }

  const LogicalTensor& round_weight(const LogicalTensor& weight, const HessianFactor& factor) {
    const int64_t rows = weight.rows();
    const int64_t cols = weight.cols();
    std::vector<std::byte>& codes =
        result_.storage.emplace_back(static_cast<size_t>(rows * cols / 2));
    std::vector<std::byte>& scales =
        result_.storage.emplace_back(static_cast<size_t>(rows * cols / kGroup));
    LogicalTensor& rounded = result_.tensors.emplace_back();
    rounded.name = weight.name;
    rounded.dtype = DType::kNVFP4ModelOpt;
    rounded.shape = weight.shape;
    rounded.data = codes;
    rounded.block_scales = scales;
    rounded.input_scale = input_scale(weight.name);
    for (int64_t first = 0; first < rows; first += kPieceRows) {
      const int64_t count = std::min(kPieceRows, rows - first);
      const std::vector<float> values = exported_rows(weight, first, count);
      const std::vector<float> block_amax = largest_of_blocks(values);
      const NVFP4ModelOptData data = encode_nvfp4_modelopt(
          values.data(), count, cols, {.amax = amax_.at(weight.name), .block_amax = block_amax}
      );
      rounded.scale = data.scale;
      std::copy(
          data.block_scales.begin(),
          data.block_scales.end(),
          scales.begin() + first * (cols / kGroup)
      );
      round_gptq(
          {values, data.block_scales, data.scale, count, cols},
          factor,
          std::span(codes).subspan(
              static_cast<size_t>(first * cols / 2), static_cast<size_t>(count * cols / 2)
          ),
          request_.pool
      );
    }
    return rounded;
  }

  static std::vector<float> largest_of_blocks(const std::vector<float>& values) {
    std::vector<float> largest(values.size() / kGroup, 0.0F);
    for (size_t i = 0; i < values.size(); ++i) {
      float& block = largest[i / kGroup];
      block = std::max(block, std::fabs(values[i]));
    }
    return largest;
  }

  const CalibrationRequest& request_;
  Nvfp4Weights scales_;
  std::map<int64_t, std::vector<PlannedTensor*>> parts_;  // to be rounded, by layer
  std::vector<PlannedTensor*> rounded_before_;            // NVFP4 in the source already
  std::map<std::string, float, std::less<>> amax_;
  std::map<std::string, float, std::less<>> largest_;  // inputs, of weights that multiply
  std::map<std::string, float, std::less<>> input_scales_;
  CalibratedWeights result_;
};

}  // namespace

void refuse_idle_calibration(const CheckpointPlan& plan, bool gptq) {
  const bool some = std::any_of(plan.begin(), plan.end(), [&](const PlannedTensor& planned) {
    return planned.dtype == DType::kNVFP4ModelOpt && !(gptq && is_nvfp4(planned.source->dtype));
  });
  if (!some) {
    throw Error(
        ErrorKind::kInvalidArgument,
        gptq ? "no weight is left to be rounded: those that become NVFP4 are NVFP4 already; leave "
               "out --gptq"
             : "no weight becomes NVFP4, so there is nothing to calibrate"
    );
  }
}

CalibratedWeights calibrate_nvfp4(CheckpointPlan& plan, const CalibrationRequest& request) {
  refuse_idle_calibration(plan, request.gptq);
  return Calibration(plan, request).run();
}

}  // namespace octet
