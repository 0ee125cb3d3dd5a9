#include "octet/quantize/gptq.h"

#include <algorithm>
#include <vector>

#include "octet/base/check.h"
#include "octet/tensor/types/float_formats.h"

namespace octet {
namespace {

constexpr int64_t kGroup = 16;
/// Rows that a thread works on together, so that one pass over the factor serves them all.
constexpr int64_t kTileRows = 16;
/// Columns of the rest that are corrected while a block of the factor is in the cache.
constexpr int64_t kStrip = 256;

class Tile {
 public:
  Tile(const GptqRows& rows, const HessianFactor& factor)
      : rows_(rows),
        factor_(factor),
        values_(static_cast<size_t>(kTileRows * rows.cols)),
        errors_(static_cast<size_t>(kTileRows * kGptqBlock)),
        scales_(static_cast<size_t>(kTileRows * rows.cols / kGroup)) {}

  void round(int64_t first, int64_t count, std::span<std::byte> codes) {
    load(first, count);
    for (int64_t begin = 0; begin < rows_.cols; begin += kGptqBlock) {
      const int64_t end = std::min(begin + kGptqBlock, rows_.cols);
      for (int64_t r = 0; r < count; ++r) {
        round_block(r, begin, end, codes.data() + (first + r) * rows_.cols / 2);
      }
      correct_rest(count, begin, end);
    }
  }

 private:
  void load(int64_t first, int64_t count) {
    const float* from = rows_.weights.data() + first * rows_.cols;
    std::copy(from, from + count * rows_.cols, values_.begin());
    const int64_t groups = rows_.cols / kGroup;
    for (int64_t g = 0; g < count * groups; ++g) {
      const bool zero = std::all_of(from + g * kGroup, from + (g + 1) * kGroup, [](float w) {
        return w == 0.0F;
      });
      const auto scale =
          static_cast<uint8_t>(rows_.block_scales[static_cast<size_t>(first * groups + g)]);
      scales_[static_cast<size_t>(g)] = zero ? 0.0F : e4m3_to_f32(scale) * rows_.global_scale;
    }
  }

  /// Columns [begin, end) of one row.
  void round_block(int64_t r, int64_t begin, int64_t end, std::byte* codes) {
    double* values = values_.data() + r * rows_.cols;
    double* errors = errors_.data() + r * kGptqBlock;
    for (int64_t i = begin; i < end; ++i) {
      const float scale = scales_[static_cast<size_t>(r * (rows_.cols / kGroup) + i / kGroup)];
      // As an export of the rounded weight would find it again: in float32.
      const uint8_t code =
          scale == 0.0F ? uint8_t{0} : f32_to_e2m1(static_cast<float>(values[i]) / scale);
      const double rounded = static_cast<double>(kE2M1Values[code] * scale);
      const double* factor = factor_.row(i);
      const double error = (values[i] - rounded) / factor[i];
      errors[i - begin] = error;
      for (int64_t k = i + 1; k < end; ++k) {
        values[k] -= error * factor[k];
      }
      std::byte& pair = codes[i / 2];
      pair = i % 2 == 0 ? std::byte{code} : pair | std::byte{static_cast<uint8_t>(code << 4U)};
    }
  }

  /// The errors of columns [begin, end) enter those after them.
  void correct_rest(int64_t count, int64_t begin, int64_t end) {
    for (int64_t strip = end; strip < rows_.cols; strip += kStrip) {
      const int64_t width = std::min(kStrip, rows_.cols - strip);
      for (int64_t r = 0; r < count; ++r) {
        subtract_multiples(
            {values_.data() + r * rows_.cols + strip, static_cast<size_t>(width)},
            {errors_.data() + r * kGptqBlock, static_cast<size_t>(end - begin)},
            factor_.row(begin) + strip,
            rows_.cols
        );
      }
    }
  }

  const GptqRows& rows_;
  const HessianFactor& factor_;
  std::vector<double> values_;  // [kTileRows, cols]
  std::vector<double> errors_;  // [kTileRows, kGptqBlock]
  std::vector<float> scales_;   // [kTileRows, cols / 16]
};

}  // namespace

void round_gptq(
    const GptqRows& rows, const HessianFactor& factor, std::span<std::byte> codes, ThreadPool& pool
) {
  OCTET_CHECK(factor.size() == rows.cols && rows.cols % kGroup == 0);
  OCTET_CHECK(static_cast<int64_t>(rows.weights.size()) == rows.rows * rows.cols);
  OCTET_CHECK(static_cast<int64_t>(codes.size()) == rows.rows * rows.cols / 2);
  pool.for_ranges(rows.rows, kTileRows, [&](int64_t begin, int64_t end) {
    Tile tile(rows, factor);
    for (int64_t first = begin; first < end; first += kTileRows) {
      tile.round(first, std::min(kTileRows, end - first), codes);
    }
  });
}

}  // namespace octet
