// The sixteen levels of IQ4_NL and IQ4_XS: dense around zero, where weights are, and wider towards
// the ends. Part of the file format; not tunable.
#pragma once

#include <array>
#include <cstdint>

namespace octet::types {

inline constexpr std::array<int8_t, 16> kIQ4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

}  // namespace octet::types
