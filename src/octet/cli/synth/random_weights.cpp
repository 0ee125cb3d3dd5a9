#include "octet/cli/synth/random_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/tensor/types/block_bytes.h"
#include "octet/tensor/types/k_scales.h"

namespace octet::cli {
namespace {

constexpr int64_t kPoolUnits = 4096;   // units of a pool: small enough for a second-level cache
constexpr int64_t kUnitValues = 256;   // values of a unit, whatever the type's own block is
constexpr int64_t kPieceUnits = 4096;  // units handed to the sink at once
constexpr int kGroupScale = 32;        // of K types: half of their 6-bit range

/// Standard deviation of a code drawn uniformly from `codes` consecutive integers.
double uniform_deviation(int codes) {
  return std::sqrt((static_cast<double>(codes) * codes - 1.0) / 12.0);
}

void fill_bytes(FastRandom& random, std::byte* bytes, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) {
    const uint64_t word = random.next();
    std::memcpy(bytes + i, &word, static_cast<size_t>(std::min<int64_t>(8, count - i)));
  }
}

float random_value(FastRandom& random, double deviation) {
  const double uniform = static_cast<double>(random.next() >> 11U) * 0x1p-53;
  return static_cast<float>((uniform - 0.5) * std::sqrt(12.0) * deviation);
}

/// One block of `dtype`: random codes under scales that give the deviation.
void fill_block(FastRandom& random, DType dtype, double deviation, std::byte* block) {
  const int64_t bytes = dtype_facts(dtype).block_bytes;
  fill_bytes(random, block, bytes);
  const auto step = [&](int codes) {
    return static_cast<float>(deviation / uniform_deviation(codes));
  };
  switch (dtype) {
    case DType::kF32: {
      const float value = random_value(random, deviation);
      std::memcpy(block, &value, sizeof value);
      return;
    }
    case DType::kF16:
      types::store_f16(block, random_value(random, deviation));
      return;
    case DType::kBF16:
      types::store_u16(block, f32_to_bf16(random_value(random, deviation)));
      return;
    case DType::kQ8_0:
      types::store_f16(block, step(256));
      return;
    case DType::kQ5_0:
      types::store_f16(block, step(32));
      return;
    case DType::kQ4_1:
      types::store_f16(block, step(16));
      types::store_f16(block + 2, -7.5F * step(16));
      return;
    case DType::kQ4K: {
      const float d = step(16) / static_cast<float>(kGroupScale);
      types::store_f16(block, d);
      types::store_f16(block + 2, 7.5F * d);
      std::array<types::GroupScale, 8> scales{};
      for (types::GroupScale& group : scales) {
        const int scale = kGroupScale - 4 + static_cast<int>(random.below(9));
        group = {scale, scale};
      }
      types::pack_group_scales(scales, block + 4);
      return;
    }
    case DType::kQ6K:
      for (int group = 0; group < 16; ++group) {
        block[192 + group] =
            static_cast<std::byte>(kGroupScale - 4 + static_cast<int>(random.below(9)));
      }
      types::store_f16(block + 208, step(64) / static_cast<float>(kGroupScale));
      return;
    default:
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "no random weights of type {}: choose F32, F16, BF16, Q8_0, Q5_0, Q4_1, Q4_K or Q6_K",
              dtype_facts(dtype).name
          )
      );
  }
}

}  // namespace

const RandomWeights::Pool& RandomWeights::pool(DType dtype, double deviation) {
  Pool& pool = pools_[{dtype, deviation}];
  if (pool.empty()) {
    const DTypeFacts& facts = dtype_facts(dtype);
    pool.resize(static_cast<size_t>(kPoolUnits * row_bytes(dtype, kUnitValues)));
    for (size_t at = 0; at < pool.size(); at += static_cast<size_t>(facts.block_bytes)) {
      fill_block(random_, dtype, deviation, pool.data() + at);
    }
  }
  return pool;
}

void RandomWeights::write(
    DType dtype,
    double deviation,
    int64_t values,
    FunctionRef<void(std::span<const std::byte>)> sink
) {
  const Pool& source = pool(dtype, deviation);
  const auto unit_bytes = static_cast<size_t>(row_bytes(dtype, kUnitValues));
  std::vector<std::byte> piece(unit_bytes * static_cast<size_t>(kPieceUnits));
  int64_t left_bytes = row_bytes(dtype, values);
  while (left_bytes > 0) {
    const int64_t units =
        std::min(kPieceUnits, (left_bytes - 1) / static_cast<int64_t>(unit_bytes) + 1);
    for (int64_t unit = 0; unit < units; ++unit) {
      const size_t from = random_.below(static_cast<uint32_t>(kPoolUnits)) * unit_bytes;
      std::memcpy(
          piece.data() + static_cast<size_t>(unit) * unit_bytes, source.data() + from, unit_bytes
      );
    }
    const int64_t bytes = std::min(left_bytes, units * static_cast<int64_t>(unit_bytes));
    sink({piece.data(), static_cast<size_t>(bytes)});
    left_bytes -= bytes;
  }
}

std::vector<std::byte> constant_values(DType dtype, float value, int64_t values) {
  OCTET_CHECK(dtype == DType::kF32 || dtype == DType::kBF16);
  const auto width = static_cast<size_t>(dtype_facts(dtype).block_bytes);
  std::vector<std::byte> bytes(static_cast<size_t>(values) * width);
  for (size_t at = 0; at < bytes.size(); at += width) {
    if (dtype == DType::kF32) {
      std::memcpy(bytes.data() + at, &value, sizeof value);
    } else {
      types::store_u16(bytes.data() + at, f32_to_bf16(value));
    }
  }
  return bytes;
}

}  // namespace octet::cli
