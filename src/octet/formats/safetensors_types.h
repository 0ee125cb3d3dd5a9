// The element types of safetensors files: how many bits a value takes.
#pragma once

#include <optional>
#include <string_view>

namespace octet {

/// nullopt for a name that the format does not know.
std::optional<int> safetensors_bits(std::string_view dtype);

}  // namespace octet
