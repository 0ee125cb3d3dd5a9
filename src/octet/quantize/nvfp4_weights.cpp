#include "octet/quantize/nvfp4_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/quantize/first_failure.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/nvfp4_layouts.h"
#include "octet/tensor/types/float_formats.h"

namespace octet {
namespace {

constexpr int64_t kGroup = 16;
constexpr int64_t kPieceRows = 256;

/// Runtimes compute these with one product: they need one global scale.
constexpr std::string_view kFused[][3] = {
    {".attn_q.weight", ".attn_k.weight", ".attn_v.weight"},
    {".ffn_gate.weight", ".ffn_up.weight", ".ffn_up.weight"},
};

/// A BF16 value: ModelOpt casts weights to the type that it exports.
float largest_exported(std::span<const float> values) {
  float largest = 0.0F;
  for (const float value : values) {
    largest = std::max(largest, std::fabs(bf16_to_f32(f32_to_bf16(value))));
  }
  return largest;
}

bool is_nvfp4(const LogicalTensor& tensor) {
  return tensor.dtype == DType::kNVFP4 || tensor.dtype == DType::kNVFP4ModelOpt;
}

}  // namespace

std::vector<std::string> fused_with(const std::string& name) {
  for (const auto& group : kFused) {
    for (const std::string_view suffix : group) {
      if (name.ends_with(suffix)) {
        std::vector<std::string> names;
        const std::string layer = name.substr(0, name.size() - suffix.size());
        for (const std::string_view member : group) {
          names.push_back(layer + std::string(member));
        }
        return names;
      }
    }
  }
  return {name};
}

void Nvfp4Weights::for_pieces(
    const LogicalTensor& tensor, FunctionRef<void(int64_t first, int64_t count)> piece
) const {
  for (int64_t first = 0; first < tensor.rows(); first += kPieceRows) {
    const int64_t count = std::min(kPieceRows, tensor.rows() - first);
    piece(first, count);
    drop_first_rows(source_, tensor, first + count);
  }
}

void Nvfp4Weights::write(
    const LogicalTensor& tensor, std::vector<std::byte>& scales, Transcoder::Sink sink
) {
  scales.resize(static_cast<size_t>(tensor.rows() * (tensor.cols() / kGroup)));
  if (is_nvfp4(tensor)) {
    copy(tensor, scales, sink);
  } else {
    round(tensor, scales, sink);
  }
}

float Nvfp4Weights::global_scale(const LogicalTensor& tensor) {
  if (is_nvfp4(tensor)) {
    return tensor.scale;
  }
  // It depends on the magnitude alone, so the encoder tells it for any group.
  const std::array<float, kGroup> zeros{};
  return encode_nvfp4_modelopt(
             zeros.data(), 1, kGroup, {.amax = shared_amax(tensor), .block_amax = {}}
  ).scale;
}

void Nvfp4Weights::copy(
    const LogicalTensor& tensor, std::vector<std::byte>& scales, Transcoder::Sink sink
) {
  if (tensor.dtype == DType::kNVFP4ModelOpt) {
    std::memcpy(scales.data(), tensor.block_scales.data(), scales.size());
    const size_t width = tensor.data.size() / static_cast<size_t>(tensor.rows());
    for_pieces(tensor, [&](int64_t first, int64_t count) {
      sink(
          tensor.data.subspan(
              static_cast<size_t>(first) * width, static_cast<size_t>(count) * width
          ),
          count
      );
    });
    return;
  }
  const auto row_bytes_in = static_cast<size_t>(row_bytes(DType::kNVFP4, tensor.cols()));
  const auto codes_width = static_cast<size_t>(tensor.cols() / 2);
  const auto scales_width = static_cast<size_t>(tensor.cols() / kGroup);
  std::vector<std::byte> codes(codes_width);
  for_pieces(tensor, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const auto r = static_cast<size_t>(row);
      const std::span<std::byte> row_scales(scales.data() + r * scales_width, scales_width);
      nvfp4_row_to_modelopt(tensor.data.subspan(r * row_bytes_in, row_bytes_in), codes, row_scales);
      if (std::find(row_scales.begin(), row_scales.end(), std::byte{0x7F}) != row_scales.end()) {
        throw Error(
            ErrorKind::kUnsupported,
            fmt::format(
                "tensor '{}' has a block scale of 0x7F, which is no number in ModelOpt's layout",
                tensor.name
            )
        );
      }
      sink(codes, 1);
    }
  });
}

float Nvfp4Weights::amax(const LogicalTensor& tensor) {
  const auto known = amax_.find(tensor.name);
  if (known != amax_.end()) {
    return known->second;
  }
  const int64_t cols = tensor.cols();
  std::vector<float> largest(static_cast<size_t>(tensor.rows()));
  for_pieces(tensor, [&](int64_t first, int64_t count) {
    pool_.for_ranges(count, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(cols));
      for (int64_t row = first + begin; row < first + end; ++row) {
        decode_rows(tensor, row, 1, values.data());
        largest[static_cast<size_t>(row)] = largest_exported(values);
      }
    });
  });
  const float result = *std::max_element(largest.begin(), largest.end());
  amax_.emplace(tensor.name, result);
  return result;
}

float Nvfp4Weights::shared_amax(const LogicalTensor& tensor) {
  float largest = 0.0F;
  const std::vector<std::string> names = fused_with(tensor.name);
  for (const PlannedTensor& planned : plan_) {
    const bool shares = planned.dtype == DType::kNVFP4ModelOpt &&
                        std::find(names.begin(), names.end(), planned.source->name) != names.end();
    if (shares) {
      largest = std::max(largest, amax(*planned.source));
    }
  }
  return largest > 0.0F ? largest : 1.0F;
}

void Nvfp4Weights::round(
    const LogicalTensor& tensor, std::vector<std::byte>& scales, Transcoder::Sink sink
) {
  const int64_t cols = tensor.cols();
  const float amax = shared_amax(tensor);
  std::vector<std::byte> codes;
  for_pieces(tensor, [&](int64_t first, int64_t count) {
    codes.resize(static_cast<size_t>(count * (cols / 2)));
    FirstFailure failure;
    pool_.for_ranges(count, 1, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(cols));
      int64_t row = begin;
      try {
        for (; row < end; ++row) {
          decode_rows(tensor, first + row, 1, values.data());
          const NVFP4ModelOptData data =
              encode_nvfp4_modelopt(values.data(), 1, cols, {.amax = amax, .block_amax = {}});
          std::copy(data.codes.begin(), data.codes.end(), codes.begin() + row * (cols / 2));
          std::copy(
              data.block_scales.begin(),
              data.block_scales.end(),
              scales.begin() + (first + row) * (cols / kGroup)
          );
        }
      } catch (const Error& error) {
        failure.record(first + row, error);
      }
    });
    failure.rethrow(tensor.name);
    sink(codes, count);
  });
}

}  // namespace octet
