// The type of a token id, shared by every module that handles tokens.
#pragma once

#include <cstdint>

namespace octet {

using TokenId = int32_t;

}  // namespace octet
