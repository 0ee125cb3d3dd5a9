#include "octet/kernels/cpu/matmul/weight_unpacking.h"

#include <array>
#include <cstring>
#include <span>

#include "octet/kernels/cpu/matmul/block_codes.h"
#include "octet/tensor/logical_tensor.h"
#include "octet/tensor/types/iq4_xs.h"
#include "octet/tensor/types/k_scales.h"

namespace octet::cpu {

namespace {

using types::load_u32;

/// One chunk of one row, as the file has it.
struct FileChunk {
  static constexpr int64_t kMostBytes = kChunkValues * static_cast<int64_t>(sizeof(float));

  std::array<std::byte, kMostBytes> blocks{};
  std::array<std::byte, kChunkValues / 16> block_scales{};  // kNVFP4ModelOpt
};

/// One row of a chunk of a tile.
struct ChunkRow {
  const std::byte* chunk = nullptr;
  int64_t row = 0;

  /// Where the row's four bytes are in a vector of its half.
  int64_t lane() const { return 4 * (row % kHalfRows); }
  bool far_half() const { return row >= kHalfRows; }
};

/// Puts the low nibbles of `vectors` code vectors, two rows a byte, into the blocks.
template <typename Codes>
void unpack_nibbles(ChunkRow from, int64_t vectors, std::byte* blocks) {
  for (int64_t v = 0; v < vectors; ++v) {
    const uint32_t codes =
        nibbles_at(from.chunk + v * kCodeVectorBytes + from.lane(), from.far_half());
    Codes::put(blocks + v / Codes::kVectors * Codes::kBytes, v % Codes::kVectors, codes);
  }
}

/// Puts the fifth bits of `vectors` code vectors, one bit plane for every eight of them, into the
/// blocks.
template <typename Codes>
void unpack_fifth(ChunkRow from, int64_t offset, int64_t vectors, std::byte* blocks) {
  const std::byte* planes = from.chunk + offset + 4 * from.row;
  for (int64_t v = 0; v < vectors; ++v) {
    const uint32_t plane = load_u32(planes + v / 8 * 2 * kCodeVectorBytes);
    const uint32_t fifth = ((plane >> (v % 8)) & kLowBits) << 4;
    Codes::put(blocks + v / Codes::kVectors * Codes::kBytes, v % Codes::kVectors, fifth);
  }
}

/// Copies the row's fields out of an array [count][row] of fields of `bytes` bytes at `offset` of
/// the chunk, to places `stride` bytes apart.
void unpack_field(
    ChunkRow from, int64_t offset, int64_t count, int64_t bytes, std::byte* out, int64_t stride
) {
  for (int64_t i = 0; i < count; ++i) {
    const std::byte* field = from.chunk + offset + (i * kTileRows + from.row) * bytes;
    std::memcpy(out + i * stride, field, static_cast<size_t>(bytes));
  }
}

void unpack_float(DType dtype, ChunkRow from, int64_t values, std::byte* out) {
  // BF16 lies in pairs of values; that of an odd last value ends in zeros.
  const int64_t unit = dtype == DType::kF16 ? 2 : 4;
  const int64_t units = dtype == DType::kBF16 ? (values + 1) / 2 : values;
  unpack_field(from, 0, units, unit, out, unit);
}

/// Types with blocks of 32; the scale comes first in the block.
template <DType dtype>
void unpack_block_chunk(ChunkRow from, int64_t values, std::byte* blocks) {
  using Codes = BlockCodes<dtype>;
  const int64_t count = values / kBlockValues;
  if constexpr (dtype == DType::kQ8_0) {
    for (int64_t v = 0; v < 8 * count; ++v) {
      const uint32_t codes = load_u32(from.chunk + v * 2 * kCodeVectorBytes + 4 * from.row);
      Codes::put(blocks + v / 8 * Codes::kBytes, v % 8, codes);
    }
  } else {
    unpack_nibbles<Codes>(from, 8 * count, blocks);
  }
  if constexpr (BlockTile::fifth_bytes(dtype) > 0) {
    unpack_fifth<Codes>(from, BlockTile::fifth_offset(dtype, count), 8 * count, blocks);
  }
  constexpr int64_t kScaleBytes = BlockTile::scale_bytes(dtype) / kTileRows;
  const int64_t scales = BlockTile::scale_offset(dtype, count);
  unpack_field(from, scales, count, kScaleBytes, blocks, Codes::kBytes);
  if constexpr (BlockTile::minimum_bytes(dtype) > 0) {
    const int64_t minimums = BlockTile::minimum_offset(dtype, count);
    unpack_field(from, minimums, count, 2, blocks + kScaleBytes, Codes::kBytes);
  }
}

/// Scales, minimums, d and dmin of Q4_K and Q5_K.
void unpack_affine_scales(DType dtype, ChunkRow from, std::byte* block) {
  const std::byte* scales = from.chunk + AffineSuperTile::scale_offset(dtype) +
                            (from.far_half() ? 3 * kCodeVectorBytes : 0) + from.lane();
  std::array<types::GroupScale, 8> groups;
  for (size_t j = 0; j < 4; ++j) {
    const auto byte = [&](int64_t vector) {
      return static_cast<int>(scales[vector * kCodeVectorBytes + static_cast<int64_t>(j)]);
    };
    const int near_scale = byte(0);
    const int far_scale = byte(1);
    const int minimum = byte(2);
    groups[j] = {near_scale & 63, minimum & 63};
    groups[j + 4] = {
        far_scale & 63, (near_scale >> 6) | ((far_scale >> 6) << 2) | ((minimum >> 6) << 4)};
  }
  types::pack_group_scales(groups, block + 4);
  unpack_field(from, AffineSuperTile::d_offset(dtype), 1, 2, block, 0);
  unpack_field(from, AffineSuperTile::dmin_offset(dtype), 1, 2, block + 2, 0);
}

void unpack_q6k_chunk(ChunkRow from, std::byte* block) {
  using Codes = BlockCodes<DType::kQ6K>;
  const std::byte* half = from.chunk + (from.far_half() ? SixBitTile::kHalfBytes : 0) + from.lane();
  for (int64_t group = 0; group < 16; ++group) {
    uint32_t last = 0;
    for (int64_t i = 0; i < 3; ++i) {
      const uint32_t stored =
          load_u32(half + group * SixBitTile::kGroupBytes + i * kCodeVectorBytes);
      Codes::put(block, 4 * group + i, stored & 0x3F3F3F3FU);
      last |= (stored & 0xC0C0C0C0U) >> (2 + 2 * i);
    }
    Codes::put(block, 4 * group + 3, last);
  }
  unpack_field(from, SixBitTile::kScaleOffset, 16, 1, block + 192, 1);
  unpack_field(from, SixBitTile::kDOffset, 1, 2, block + 208, 0);
}

void unpack_iq4xs_chunk(ChunkRow from, std::byte* block) {
  unpack_nibbles<BlockCodes<DType::kIQ4XS>>(from, 64, block);
  std::array<int8_t, 8> scales{};
  std::byte* const bytes = std::as_writable_bytes(std::span(scales)).data();
  unpack_field(from, LevelSuperTile::kScaleOffset, 8, 1, bytes, 1);
  types::IQ4XS::set_group_scales(scales, block);
  unpack_field(from, LevelSuperTile::kDOffset, 1, 2, block, 0);
}

void unpack_nvfp4_chunk(ChunkRow from, int64_t values, std::byte* blocks) {
  using Codes = BlockCodes<DType::kNVFP4>;
  unpack_nibbles<Codes>(from, values / 4, blocks);
  const int64_t scales = BlockTile::scale_offset(DType::kNVFP4, values / kBlockValues);
  for (int64_t block = 0; block < values / 64; ++block) {
    unpack_field(from, scales + block * 4 * kTileRows, 4, 1, blocks + block * Codes::kBytes, 1);
  }
}

void unpack_nvfp4_modelopt_chunk(ChunkRow from, int64_t values, FileChunk& out) {
  unpack_nibbles<BlockCodes<DType::kNVFP4ModelOpt>>(from, values / 4, out.blocks.data());
  const int64_t blocks = divide_up(values, kBlockValues);
  const int64_t scales = BlockTile::scale_offset(DType::kNVFP4ModelOpt, blocks);
  unpack_field(from, scales, values / 16, 1, out.block_scales.data(), 1);
}

/// `out` is zero before.
void unpack_chunk(DType dtype, ChunkRow from, int64_t values, FileChunk& out) {
  std::byte* blocks = out.blocks.data();
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return unpack_float(dtype, from, values, blocks);
    case DType::kQ8_0:
      return unpack_block_chunk<DType::kQ8_0>(from, values, blocks);
    case DType::kQ4_0:
      return unpack_block_chunk<DType::kQ4_0>(from, values, blocks);
    case DType::kQ4_1:
      return unpack_block_chunk<DType::kQ4_1>(from, values, blocks);
    case DType::kQ5_0:
      return unpack_block_chunk<DType::kQ5_0>(from, values, blocks);
    case DType::kQ5_1:
      return unpack_block_chunk<DType::kQ5_1>(from, values, blocks);
    case DType::kIQ4NL:
      return unpack_block_chunk<DType::kIQ4NL>(from, values, blocks);
    case DType::kMXFP4:
      return unpack_block_chunk<DType::kMXFP4>(from, values, blocks);
    case DType::kQ4K:
      unpack_nibbles<BlockCodes<DType::kQ4K>>(from, 64, blocks);
      return unpack_affine_scales(dtype, from, blocks);
    case DType::kQ5K:
      unpack_nibbles<BlockCodes<DType::kQ5K>>(from, 64, blocks);
      unpack_fifth<BlockCodes<DType::kQ5K>>(from, AffineSuperTile::fifth_offset(), 64, blocks);
      return unpack_affine_scales(dtype, from, blocks);
    case DType::kQ6K:
      return unpack_q6k_chunk(from, blocks);
    case DType::kIQ4XS:
      return unpack_iq4xs_chunk(from, blocks);
    case DType::kNVFP4:
      return unpack_nvfp4_chunk(from, values, blocks);
    case DType::kNVFP4ModelOpt:
      return unpack_nvfp4_modelopt_chunk(from, values, out);
  }
}

}  // namespace

void unpack_row(DType dtype, int64_t cols, const TileRow& from, float* out) noexcept {
  const std::byte* chunk = from.tile;
  for (int64_t c = 0; c < chunk_count(cols); ++c) {
    const int64_t values = chunk_values(cols, c);
    FileChunk file;
    unpack_chunk(dtype, {chunk, from.row}, values, file);
    decode_row(
        dtype,
        {file.blocks.data(), file.block_scales.data(), from.scale},
        values,
        out + c * kChunkValues
    );
    chunk += chunk_bytes(dtype, values);
  }
}

}  // namespace octet::cpu
