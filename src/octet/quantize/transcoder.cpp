#include "octet/quantize/transcoder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/quantize/first_failure.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/nvfp4_layouts.h"
#include "octet/tensor/types/nvfp4_modelopt.h"

namespace octet {
namespace {

constexpr int64_t kPieceBytes = int64_t{4} << 20;  // of results and of source: bounds memory
constexpr int64_t kPiecesAThread = 1;

bool is_nvfp4(DType dtype) {
  return dtype == DType::kNVFP4 || dtype == DType::kNVFP4ModelOpt;
}

bool is_nvfp4_repack(const LogicalTensor& tensor, DType dtype) {
  return tensor.dtype == DType::kNVFP4ModelOpt && dtype == DType::kNVFP4;
}

std::span<const std::byte> row_of(std::span<const std::byte> bytes, int64_t row, int64_t rows) {
  const size_t width = bytes.size() / static_cast<size_t>(rows);
  return bytes.subspan(static_cast<size_t>(row) * width, width);
}

/// The other layout has no sign and no NaN to carry these over.
void require_legal_scales(std::span<const std::byte> scales, int64_t row) {
  const auto legal = [](std::byte scale) { return types::NVFP4ModelOpt::is_valid_scale(scale); };
  if (!std::all_of(scales.begin(), scales.end(), legal)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("row {} has a block scale that is negative or no number", row)
    );
  }
}

}  // namespace

bool is_exact_copy(const LogicalTensor& tensor, DType dtype) {
  return tensor.dtype == dtype || (is_nvfp4(tensor.dtype) && is_nvfp4(dtype)) ||
         (dtype == DType::kF32 && (tensor.dtype == DType::kBF16 || tensor.dtype == DType::kF16));
}

void drop_first_rows(const Checkpoint& source, const LogicalTensor& tensor, int64_t rows) {
  const auto first = [&](std::span<const std::byte> bytes) {
    return bytes.first(
        bytes.size() / static_cast<size_t>(tensor.rows()) * static_cast<size_t>(rows)
    );
  };
  LogicalTensor piece;
  piece.data = first(tensor.data);
  piece.block_scales = first(tensor.block_scales);
  source.drop_pages(piece);
}

void Transcoder::for_pieces(
    const LogicalTensor& tensor, int64_t row_bytes, EncodeRows encode, Sink sink
) {
  const int64_t rows = tensor.rows();
  const int64_t source_row_bytes = static_cast<int64_t>(tensor.data.size()) / rows;
  const int64_t piece_rows = std::clamp<int64_t>(
      kPieceBytes * kPiecesAThread * pool_.threads() / std::max(row_bytes, source_row_bytes),
      1,
      rows
  );
  std::vector<std::byte> piece(static_cast<size_t>(piece_rows * row_bytes));
  for (int64_t first = 0; first < rows; first += piece_rows) {
    const int64_t count = std::min(piece_rows, rows - first);
    FirstFailure failure;
    pool_.for_ranges(count, 1, [&](int64_t begin, int64_t end) {
      try {
        encode(first + begin, end - begin, piece.data() + begin * row_bytes);
      } catch (const Error& error) {
        failure.record(first + begin, error);
      }
    });
    failure.rethrow(tensor.name);
    sink({piece.data(), static_cast<size_t>(count * row_bytes)}, count);
    drop_first_rows(source_, tensor, first + count);
  }
}

void Transcoder::transcode(const LogicalTensor& tensor, const TranscodeTarget& target, Sink sink) {
  const int64_t rows = tensor.rows();
  const int64_t cols = tensor.cols();
  if (target.dtype == DType::kNVFP4ModelOpt && tensor.dtype != target.dtype) {
    throw Error(
        ErrorKind::kUnsupported,
        "tensor '" + tensor.name + "' cannot be written as NVFP4 of ModelOpt piece by piece"
    );
  }
  const int64_t out_row_bytes = row_bytes(target.dtype, cols);
  if (tensor.dtype == target.dtype) {
    for_pieces(
        tensor,
        out_row_bytes,
        [&](int64_t first, int64_t count, std::byte* out) {
          std::memcpy(
              out,
              tensor.data.data() + first * out_row_bytes,
              static_cast<size_t>(count * out_row_bytes)
          );
        },
        sink
    );
    return;
  }
  if (is_nvfp4_repack(tensor, target.dtype)) {
    for_pieces(
        tensor,
        out_row_bytes,
        [&](int64_t first, int64_t count, std::byte* out) {
          for (int64_t r = 0; r < count; ++r) {
            require_legal_scales(row_of(tensor.block_scales, first + r, rows), first + r);
            nvfp4_row_to_ggml(
                {row_of(tensor.data, first + r, rows),
                 row_of(tensor.block_scales, first + r, rows)},
                {out + r * out_row_bytes, static_cast<size_t>(out_row_bytes)}
            );
          }
        },
        sink
    );
    return;
  }
  const float* importance = target.importance.empty() ? nullptr : target.importance.data();
  for_pieces(
      tensor,
      out_row_bytes,
      [&](int64_t first, int64_t count, std::byte* out) {
        std::vector<float> values(static_cast<size_t>(cols));
        for (int64_t r = 0; r < count; ++r) {
          decode_rows(tensor, first + r, 1, values.data());
          encode_rows(target.dtype, values.data(), 1, cols, importance, out + r * out_row_bytes);
        }
      },
      sink
  );
}

}  // namespace octet
