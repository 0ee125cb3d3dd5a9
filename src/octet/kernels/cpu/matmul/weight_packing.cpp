#include "octet/kernels/cpu/matmul/weight_packing.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "octet/kernels/cpu/matmul/block_codes.h"
#include "octet/tensor/types/iq4_xs.h"
#include "octet/tensor/types/k_scales.h"

namespace octet::cpu {

namespace {

using types::store_u32;

/// One row of the file, from the current chunk on. A row past the end of the matrix repeats one
/// block of zeros.
struct SourceRow {
  const std::byte* blocks = nullptr;
  int64_t block_stride = 0;
  const std::byte* block_scales = nullptr;  // kNVFP4ModelOpt
  int64_t scale_stride = 0;

  const std::byte* block(int64_t index) const { return blocks + index * block_stride; }
};
using SourceRows = std::array<SourceRow, kTileRows>;

constexpr size_t kLargestBlockBytes = 210;
constexpr std::array<std::byte, kLargestBlockBytes> kZeroBlock{};

/// Calls visit(v, block index, code vector inside the block) for `vectors` code vectors, unrolled
/// so that shifts and offsets inside a block become constants.
template <typename Codes, typename Visit>
[[gnu::always_inline]] inline void for_each_vector(int64_t vectors, Visit visit) {
  constexpr int64_t kStep = std::min<int64_t>(Codes::kVectors, 16);
  for (int64_t block = 0; block < vectors / Codes::kVectors; ++block) {
    for (int64_t step = 0; step < Codes::kVectors / kStep; ++step) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kStep; ++i) {
        const int64_t inside = step * kStep + i;
        visit(block * Codes::kVectors + inside, block, inside);
      }
    }
  }
}

/// Writes the low nibbles of `vectors` code vectors, two rows a byte.
template <typename Codes>
void pack_nibbles(const SourceRows& rows, int64_t vectors, std::byte* out) {
  for (int64_t r = 0; r < kHalfRows; ++r) {
    const SourceRow low_row = rows[r];
    const SourceRow high_row = rows[r + kHalfRows];
    for_each_vector<Codes>(vectors, [&](int64_t v, int64_t block, int64_t inside) {
      const uint32_t low = Codes::codes(low_row.block(block), inside) & kLowNibbles;
      const uint32_t high = Codes::codes(high_row.block(block), inside) & kLowNibbles;
      store_u32(out + v * kCodeVectorBytes + 4 * r, low | (high << 4));
    });
  }
}

/// Writes the fifth bits of `vectors` code vectors as one bit plane for every eight of them.
template <typename Codes>
void pack_fifth(const SourceRows& rows, int64_t vectors, std::byte* out) {
  for (int64_t r = 0; r < kTileRows; ++r) {
    const SourceRow row = rows[r];
    uint32_t plane = 0;
    for_each_vector<Codes>(vectors, [&](int64_t v, int64_t block, int64_t inside) {
      plane |= ((Codes::codes(row.block(block), inside) >> 4) & kLowBits) << (v % 8);
      if (v % 8 == 7) {
        store_u32(out + v / 8 * 2 * kCodeVectorBytes + 4 * r, plane);
        plane = 0;
      }
    });
  }
}

void pack_six_bits(const SourceRows& rows, std::byte* out) {
  using Codes = BlockCodes<DType::kQ6K>;
  for (int64_t row = 0; row < kTileRows; ++row) {
    const std::byte* block = rows[row].block(0);
    std::byte* half = out + row / kHalfRows * SixBitTile::kHalfBytes + 4 * (row % kHalfRows);
#pragma GCC unroll 16
    for (int64_t group = 0; group < 16; ++group) {
      std::byte* codes = half + group * SixBitTile::kGroupBytes;
      const uint32_t last = Codes::codes(block, 4 * group + 3);
#pragma GCC unroll 3
      for (int64_t i = 0; i < 3; ++i) {
        const uint32_t top = (last << (2 + 2 * i)) & 0xC0C0C0C0U;
        store_u32(codes + i * kCodeVectorBytes, Codes::codes(block, 4 * group + i) | top);
      }
    }
  }
}

/// Copies a field of `bytes` bytes at `offset` of every block into an array [block][row].
void pack_field(
    const SourceRows& rows, int64_t blocks, int64_t offset, int64_t bytes, std::byte* out
) {
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t row = 0; row < kTileRows; ++row) {
      std::memcpy(out + (b * kTileRows + row) * bytes, rows[row].block(b) + offset, bytes);
    }
  }
}

/// Copies the `bytes` bytes of every row in units of `unit` bytes: [unit index][row].
template <int64_t unit>
void pack_units(const SourceRows& rows, int64_t bytes, std::byte* out) {
  for (int64_t r = 0; r < kTileRows; ++r) {
    const SourceRow& row = rows[r];
    if (row.block_stride == 0) {
      continue;  // zeroed before
    }
    for (int64_t at = 0; at + unit <= bytes; at += unit) {
      std::memcpy(out + at * kTileRows + r * unit, row.blocks + at, unit);
    }
    const int64_t rest = bytes % unit;
    std::memcpy(out + (bytes - rest) * kTileRows + r * unit, row.blocks + bytes - rest, rest);
  }
}

void pack_float(DType dtype, const SourceRows& rows, int64_t values, std::byte* out) {
  if (dtype == DType::kF16) {
    pack_units<2>(rows, 2 * values, out);
  } else {
    // BF16 goes in pairs of values; the pair of an odd last value was zeroed.
    pack_units<4>(rows, dtype == DType::kF32 ? 4 * values : 2 * values, out);
  }
}

/// Codes, fifth bits, scales and minimums of a type with blocks of 32; the scale comes first in the
/// block.
template <DType dtype>
void pack_block_chunk(const SourceRows& rows, int64_t values, std::byte* out) {
  using Codes = BlockCodes<dtype>;
  const int64_t blocks = values / kBlockValues;
  if constexpr (dtype == DType::kQ8_0) {
    for (int64_t r = 0; r < kTileRows; ++r) {
      const SourceRow row = rows[r];
      for_each_vector<Codes>(8 * blocks, [&](int64_t /*v*/, int64_t block, int64_t inside) {
        store_u32(
            out + (block * 8 + inside) * 2 * kCodeVectorBytes + 4 * r,
            Codes::codes(row.block(block), inside)
        );
      });
    }
  } else {
    pack_nibbles<Codes>(rows, 8 * blocks, out);
  }
  if constexpr (BlockTile::fifth_bytes(dtype) > 0) {
    pack_fifth<Codes>(rows, 8 * blocks, out + BlockTile::fifth_offset(dtype, blocks));
  }
  constexpr int64_t kScaleBytes = BlockTile::scale_bytes(dtype) / kTileRows;
  pack_field(rows, blocks, 0, kScaleBytes, out + BlockTile::scale_offset(dtype, blocks));
  if constexpr (BlockTile::minimum_bytes(dtype) > 0) {
    pack_field(rows, blocks, kScaleBytes, 2, out + BlockTile::minimum_offset(dtype, blocks));
  }
}

std::byte valid_e4m3(std::byte scale) {
  const uint8_t magnitude = static_cast<uint8_t>(scale) & 0x7FU;
  return static_cast<std::byte>(magnitude == 0x7F ? 0 : magnitude);
}

void pack_nvfp4_chunk(const SourceRows& rows, int64_t values, std::byte* out) {
  pack_nibbles<BlockCodes<DType::kNVFP4>>(rows, values / 4, out);
  std::byte* scales = out + BlockTile::scale_offset(DType::kNVFP4, values / kBlockValues);
  for (int64_t group = 0; group < values / 16; ++group) {
    for (int64_t row = 0; row < kTileRows; ++row) {
      scales[group * kTileRows + row] = valid_e4m3(rows[row].block(group / 4)[group % 4]);
    }
  }
}

void pack_nvfp4_modelopt_chunk(const SourceRows& rows, int64_t values, std::byte* out) {
  pack_nibbles<BlockCodes<DType::kNVFP4ModelOpt>>(rows, values / 4, out);
  const int64_t blocks = (values + kBlockValues - 1) / kBlockValues;
  std::byte* scales = out + BlockTile::scale_offset(DType::kNVFP4ModelOpt, blocks);
  for (int64_t group = 0; group < values / 16; ++group) {
    for (int64_t row = 0; row < kTileRows; ++row) {
      scales[group * kTileRows + row] =
          valid_e4m3(rows[row].block_scales[group * rows[row].scale_stride]);
    }
  }
}

/// Scales, minimums, d and dmin of Q4_K and Q5_K.
void pack_affine_scales(DType dtype, const SourceRows& rows, std::byte* out) {
  for (int64_t row = 0; row < kTileRows; ++row) {
    const std::byte* packed = rows[row].block(0) + 4;
    uint32_t near_scales = 0;
    uint32_t far_scales = 0;
    uint32_t minimums = 0;
    for (int64_t j = 0; j < 4; ++j) {
      const types::GroupScale near = types::unpack_group_scale(packed, j);
      const types::GroupScale far = types::unpack_group_scale(packed, j + 4);
      const auto byte = [&](int low6, int top2) {
        return static_cast<uint32_t>(low6 | ((top2 & 3) << 6)) << (8 * j);
      };
      near_scales |= byte(near.scale, far.minimum);
      far_scales |= byte(far.scale, far.minimum >> 2);
      minimums |= byte(near.minimum, far.minimum >> 4);
    }
    std::byte* scales =
        out + AffineSuperTile::scale_offset(dtype) + row / kHalfRows * 192 + 4 * (row % kHalfRows);
    store_u32(scales, near_scales);
    store_u32(scales + kCodeVectorBytes, far_scales);
    store_u32(scales + 2 * kCodeVectorBytes, minimums);
  }
  pack_field(rows, 1, 0, 2, out + AffineSuperTile::d_offset(dtype));
  pack_field(rows, 1, 2, 2, out + AffineSuperTile::dmin_offset(dtype));
}

void pack_q6k_chunk(const SourceRows& rows, std::byte* out) {
  pack_six_bits(rows, out);
  for (int64_t group = 0; group < 16; ++group) {
    for (int64_t row = 0; row < kTileRows; ++row) {
      out[SixBitTile::kScaleOffset + group * kTileRows + row] = rows[row].block(0)[192 + group];
    }
  }
  pack_field(rows, 1, 208, 2, out + SixBitTile::kDOffset);
}

void pack_iq4xs_chunk(const SourceRows& rows, std::byte* out) {
  pack_nibbles<BlockCodes<DType::kIQ4XS>>(rows, 64, out);
  for (int64_t group = 0; group < 8; ++group) {
    for (int64_t row = 0; row < kTileRows; ++row) {
      out[LevelSuperTile::kScaleOffset + group * kTileRows + row] =
          static_cast<std::byte>(types::IQ4XS::group_scale(rows[row].block(0), group));
    }
  }
  pack_field(rows, 1, 0, 2, out + LevelSuperTile::kDOffset);
}

void pack_chunk(DType dtype, const SourceRows& rows, int64_t values, std::byte* out) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return pack_float(dtype, rows, values, out);
    case DType::kQ8_0:
      return pack_block_chunk<DType::kQ8_0>(rows, values, out);
    case DType::kQ4_0:
      return pack_block_chunk<DType::kQ4_0>(rows, values, out);
    case DType::kQ4_1:
      return pack_block_chunk<DType::kQ4_1>(rows, values, out);
    case DType::kQ5_0:
      return pack_block_chunk<DType::kQ5_0>(rows, values, out);
    case DType::kQ5_1:
      return pack_block_chunk<DType::kQ5_1>(rows, values, out);
    case DType::kIQ4NL:
      return pack_block_chunk<DType::kIQ4NL>(rows, values, out);
    case DType::kMXFP4:
      return pack_block_chunk<DType::kMXFP4>(rows, values, out);
    case DType::kQ4K:
      pack_nibbles<BlockCodes<DType::kQ4K>>(rows, 64, out);
      return pack_affine_scales(dtype, rows, out);
    case DType::kQ5K:
      pack_nibbles<BlockCodes<DType::kQ5K>>(rows, 64, out);
      pack_fifth<BlockCodes<DType::kQ5K>>(rows, 64, out + AffineSuperTile::fifth_offset());
      return pack_affine_scales(dtype, rows, out);
    case DType::kQ6K:
      return pack_q6k_chunk(rows, out);
    case DType::kIQ4XS:
      return pack_iq4xs_chunk(rows, out);
    case DType::kNVFP4:
      return pack_nvfp4_chunk(rows, values, out);
    case DType::kNVFP4ModelOpt:
      return pack_nvfp4_modelopt_chunk(rows, values, out);
  }
}

}  // namespace

void pack_tile(const LogicalTensor& tensor, int64_t tile, std::byte* out) noexcept {
  const DTypeFacts& facts = dtype_facts(tensor.dtype);
  const int64_t cols = tensor.cols();
  const int64_t bytes = row_bytes(tensor.dtype, cols);
  const int64_t scale_bytes = tensor.block_scales.empty() ? 0 : cols / facts.block_values;
  SourceRows rows;
  for (int64_t r = 0; r < kTileRows; ++r) {
    const int64_t row = tile * kTileRows + r;
    if (row < tensor.rows()) {
      rows[r] = {
          tensor.data.data() + row * bytes,
          facts.block_bytes,
          tensor.block_scales.data() + row * scale_bytes,
          1};
    } else {
      rows[r] = {kZeroBlock.data(), 0, kZeroBlock.data(), 0};
    }
  }
  const bool whole = tile * kTileRows + kTileRows <= tensor.rows();
  for (int64_t chunk = 0; chunk < chunk_count(cols); ++chunk) {
    const int64_t values = chunk_values(cols, chunk);
    const int64_t chunk_size = chunk_bytes(tensor.dtype, values);
    if (!whole || values < kChunkValues) {
      std::memset(out, 0, chunk_size);  // padding that no source row fills
    }
    pack_chunk(tensor.dtype, rows, values, out);
    out += chunk_size;
    const int64_t blocks = values / facts.block_values;
    for (SourceRow& row : rows) {
      row.blocks += blocks * row.block_stride;
      row.block_scales += blocks * row.scale_stride;
    }
  }
}

float output_scale(const LogicalTensor& tensor) {
  switch (tensor.dtype) {
    case DType::kMXFP4:
      return 0.5F * tensor.scale;  // codes are twice E2M1
    case DType::kNVFP4:
    case DType::kNVFP4ModelOpt:
      return 128.0F * tensor.scale;  // codes are twice E2M1, scales are E4M3 * 2^-8
    default:
      return tensor.scale;
  }
}

float w4a4_output_scale(const LogicalTensor& tensor) {
  return 64.0F * (tensor.input_scale.value() * tensor.scale);
}

}  // namespace octet::cpu
