#include "octet/tensor/nvfp4_layouts.h"

#include <array>

#include "octet/base/check.h"

namespace octet {
namespace {

constexpr size_t kGroupValues = 16;
constexpr size_t kGroupBytes = kGroupValues / 2;
constexpr size_t kGroups = 4;  // of a ggml block
constexpr size_t kBlockBytes = kGroups + kGroups * kGroupBytes;

using Codes = std::array<std::byte, kGroupValues>;

/// ModelOpt pairs elements 2k and 2k+1, ggml j and j+8.
Codes unpack_neighbours(const std::byte* bytes) {
  Codes codes{};
  for (size_t k = 0; k < kGroupBytes; ++k) {
    codes[2 * k] = bytes[k] & std::byte{15};
    codes[2 * k + 1] = bytes[k] >> 4U;
  }
  return codes;
}

void pack_neighbours(const Codes& codes, std::byte* bytes) {
  for (size_t k = 0; k < kGroupBytes; ++k) {
    bytes[k] = codes[2 * k] | (codes[2 * k + 1] << 4U);
  }
}

Codes unpack_halves(const std::byte* bytes) {
  Codes codes{};
  for (size_t j = 0; j < kGroupBytes; ++j) {
    codes[j] = bytes[j] & std::byte{15};
    codes[j + kGroupBytes] = bytes[j] >> 4U;
  }
  return codes;
}

void pack_halves(const Codes& codes, std::byte* bytes) {
  for (size_t j = 0; j < kGroupBytes; ++j) {
    bytes[j] = codes[j] | (codes[j + kGroupBytes] << 4U);
  }
}

}  // namespace

void nvfp4_row_to_ggml(const ModelOptRow& row, std::span<std::byte> out) {
  const size_t groups = row.scales.size();
  OCTET_CHECK(groups % kGroups == 0 && row.codes.size() == groups * kGroupBytes);
  OCTET_CHECK(out.size() == groups / kGroups * kBlockBytes);
  for (size_t group = 0; group < groups; ++group) {
    std::byte* block = out.data() + group / kGroups * kBlockBytes;
    const size_t within = group % kGroups;
    block[within] = row.scales[group] & std::byte{0x7F};
    pack_halves(
        unpack_neighbours(row.codes.data() + group * kGroupBytes),
        block + kGroups + within * kGroupBytes
    );
  }
}

void nvfp4_row_to_modelopt(
    std::span<const std::byte> row, std::span<std::byte> codes, std::span<std::byte> scales
) {
  const size_t groups = scales.size();
  OCTET_CHECK(groups % kGroups == 0 && codes.size() == groups * kGroupBytes);
  OCTET_CHECK(row.size() == groups / kGroups * kBlockBytes);
  for (size_t group = 0; group < groups; ++group) {
    const std::byte* block = row.data() + group / kGroups * kBlockBytes;
    const size_t within = group % kGroups;
    scales[group] = block[within] & std::byte{0x7F};
    pack_neighbours(
        unpack_halves(block + kGroups + within * kGroupBytes), codes.data() + group * kGroupBytes
    );
  }
}

}  // namespace octet
