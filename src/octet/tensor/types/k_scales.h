// The twelve bytes in which Q4_K and Q5_K keep eight pairs of 6-bit group scales and minimums.
// Groups 0..3 fill bytes 0..3 (scales) and 4..7 (minimums); groups 4..7 put their low four bits
// into bytes 8..11 and their upper two into the free top bits of bytes 0..7. Invariant:
// unpack(pack(x)) == x for values 0..63.
#pragma once

#include <array>

#include "octet/tensor/types/block_bytes.h"

namespace octet::types {

struct GroupScale {
  int scale = 0;    // 0..63
  int minimum = 0;  // 0..63
};

inline GroupScale unpack_group_scale(const std::byte* packed, int64_t group) noexcept {
  const auto at = [&](int64_t i) { return static_cast<int>(packed[i]); };
  if (group < 4) {
    return {at(group) & 63, at(group + 4) & 63};
  }
  return {
      (at(group + 4) & 15) | ((at(group - 4) >> 6) << 4),
      (at(group + 4) >> 4) | ((at(group) >> 6) << 4)};
}

inline void pack_group_scales(const std::array<GroupScale, 8>& groups, std::byte* packed) noexcept {
  for (int j = 0; j < 4; ++j) {
    const GroupScale& near = groups[j];
    const GroupScale& far = groups[j + 4];
    packed[j] = static_cast<std::byte>(near.scale | ((far.scale >> 4) << 6));
    packed[j + 4] = static_cast<std::byte>(near.minimum | ((far.minimum >> 4) << 6));
    packed[j + 8] = static_cast<std::byte>((far.scale & 15) | ((far.minimum & 15) << 4));
  }
}

}  // namespace octet::types
