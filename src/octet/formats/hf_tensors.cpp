#include "octet/formats/hf_tensors.h"

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/message_text.h"
#include "octet/formats/tensor_names.h"

namespace octet {

namespace {

constexpr int64_t kGroup = 16;  // inputs that share one block scale

enum PartKind {
  kWeight,
  kBlockScale,
  kGlobalScale,
  kInputScale,
  kPackedWeight,
  kInverseGlobal,
  kInverseInput,
  kPartKinds
};

// The longest suffix comes first where one ends with another.
constexpr std::pair<std::string_view, PartKind> kSuffixes[] = {
    {".weight_scale_2", kGlobalScale},
    {".weight_global_scale", kInverseGlobal},
    {".input_global_scale", kInverseInput},
    {".weight_scale", kBlockScale},
    {".input_scale", kInputScale},
    {".weight_packed", kPackedWeight},
    {".weight", kWeight},
};

using Parts = std::array<const SafetensorsTensor*, kPartKinds>;

[[noreturn]] void malformed(const SafetensorsTensor& tensor, std::string_view expected) {
  throw Error(
      ErrorKind::kMalformed,
      fmt::format(
          "tensor {} is {} {}; expected {}",
          shown(tensor.name),
          tensor.dtype,
          shape_text(tensor.shape),
          expected
      )
  );
}

std::optional<DType> plain_dtype(std::string_view dtype) {
  if (dtype == "BF16") {
    return DType::kBF16;
  }
  if (dtype == "F16") {
    return DType::kF16;
  }
  if (dtype == "F32") {
    return DType::kF32;
  }
  return std::nullopt;
}

LogicalTensor plain_tensor(const SafetensorsTensor& source) {
  const std::optional<DType> dtype = plain_dtype(source.dtype);
  if (!dtype) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tensor {} is {}; expected BF16, F16, F32 or the parts of an NVFP4 weight",
            shown(source.name),
            source.dtype
        )
    );
  }
  LogicalTensor tensor;
  tensor.name = source.name;
  tensor.dtype = *dtype;
  tensor.shape = source.shape;
  tensor.data = source.data;
  for (const int64_t size : tensor.shape) {
    if (size < 1) {
      malformed(source, "no dimension of 0");
    }
  }
  return tensor;
}

/// A single positive F32 number, written as [] or [1].
float scalar_value(const SafetensorsTensor& tensor) {
  float value = 0.0F;
  if (tensor.dtype != "F32" || tensor.shape.size() > 1 || tensor.data.size() != sizeof(value)) {
    malformed(tensor, "one F32 number");
  }
  std::memcpy(&value, tensor.data.data(), sizeof(value));
  if (!std::isfinite(value) || value <= 0.0F) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("tensor {} is {}; expected a positive number", shown(tensor.name), value)
    );
  }
  return value;
}

/// A direct scale, or the reciprocal of an inverse one; nullopt when neither part is there.
std::optional<float> scale_of(const Parts& parts, PartKind direct, PartKind inverse) {
  if (parts[direct] != nullptr) {
    return scalar_value(*parts[direct]);
  }
  if (parts[inverse] != nullptr) {
    return 1.0F / scalar_value(*parts[inverse]);
  }
  return std::nullopt;
}

bool is_nvfp4(const Parts& parts) {
  return parts[kPackedWeight] != nullptr || parts[kBlockScale] != nullptr ||
         parts[kGlobalScale] != nullptr || parts[kInverseGlobal] != nullptr ||
         parts[kInputScale] != nullptr || parts[kInverseInput] != nullptr ||
         (parts[kWeight] != nullptr && parts[kWeight]->dtype == "U8");
}

LogicalTensor nvfp4_tensor(const std::string& base, const Parts& parts) {
  const SafetensorsTensor* codes =
      parts[kPackedWeight] != nullptr ? parts[kPackedWeight] : parts[kWeight];
  if (parts[kPackedWeight] != nullptr && parts[kWeight] != nullptr) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{} has both '.weight' and '.weight_packed'", shown(base))
    );
  }
  const SafetensorsTensor* scales = parts[kBlockScale];
  const std::optional<float> global = scale_of(parts, kGlobalScale, kInverseGlobal);
  if (codes == nullptr || scales == nullptr || !global) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{} looks like an NVFP4 weight, but {} is missing; other quantisation schemes are not "
            "supported",
            shown(base),
            codes == nullptr    ? "its weight"
            : scales == nullptr ? "'.weight_scale'"
                                : "'.weight_scale_2'"
        )
    );
  }
  if (codes->dtype != "U8" || codes->shape.size() != 2 || codes->shape[0] < 1 ||
      codes->shape[1] < 1 || codes->shape[1] % (kGroup / 2) != 0) {
    malformed(*codes, "U8 [out, in/2] with in a multiple of 16 (NVFP4 codes)");
  }
  const std::vector<int64_t> scale_shape = {codes->shape[0], codes->shape[1] / (kGroup / 2)};
  if (scales->dtype != "F8_E4M3" || scales->shape != scale_shape) {
    malformed(*scales, fmt::format("F8_E4M3 {} (NVFP4 block scales)", shape_text(scale_shape)));
  }
  LogicalTensor tensor;
  tensor.name = base + ".weight";
  tensor.dtype = DType::kNVFP4ModelOpt;
  tensor.shape = {codes->shape[0], codes->shape[1] * 2};
  tensor.data = codes->data;
  tensor.block_scales = scales->data;
  tensor.scale = *global;
  tensor.input_scale = scale_of(parts, kInputScale, kInverseInput);
  return tensor;
}

/// Base name and kind of part; nullopt for a name without a known suffix.
std::optional<std::pair<std::string, PartKind>> split_name(const std::string& name) {
  for (const auto& [suffix, kind] : kSuffixes) {
    if (name.ends_with(suffix)) {
      return std::pair(name.substr(0, name.size() - suffix.size()), kind);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<LogicalTensor> join_hf_tensors(std::span<const SafetensorsTensor> tensors) {
  std::vector<LogicalTensor> result;
  std::vector<std::pair<std::string, Parts>> layers;  // in the order of first appearance
  std::map<std::string, size_t, std::less<>> index;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.name.ends_with(".pre_quant_scale")) {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format("tensor {}: AWQ scaling is not supported", shown(tensor.name))
      );
    }
    const auto split = split_name(tensor.name);
    if (!split) {
      result.push_back(plain_tensor(tensor));
      continue;
    }
    const auto [position, inserted] = index.try_emplace(split->first, layers.size());
    if (inserted) {
      layers.emplace_back(split->first, Parts{});
    }
    const SafetensorsTensor*& slot = layers[position->second].second[split->second];
    if (slot != nullptr) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("tensor {} is there twice, under two prefixes", shown(tensor.name))
      );
    }
    slot = &tensor;
  }
  for (const auto& [base, parts] : layers) {
    result.push_back(is_nvfp4(parts) ? nvfp4_tensor(base, parts) : plain_tensor(*parts[kWeight]));
  }
  return result;
}

}  // namespace octet
