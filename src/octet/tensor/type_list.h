// The list of all weight types at compile time. Every table keyed by DType is generated from it, so
// that adding a type is one header in types/ and one line here.
// Invariant: the order is that of DType.
#pragma once

#include <array>
#include <cstddef>

#include "octet/tensor/dtype.h"
#include "octet/tensor/types/bf16.h"
#include "octet/tensor/types/f16.h"
#include "octet/tensor/types/f32.h"
#include "octet/tensor/types/iq4_nl.h"
#include "octet/tensor/types/iq4_xs.h"
#include "octet/tensor/types/mxfp4.h"
#include "octet/tensor/types/nvfp4.h"
#include "octet/tensor/types/nvfp4_modelopt.h"
#include "octet/tensor/types/q4_0.h"
#include "octet/tensor/types/q4_1.h"
#include "octet/tensor/types/q4_k.h"
#include "octet/tensor/types/q5_0.h"
#include "octet/tensor/types/q5_1.h"
#include "octet/tensor/types/q5_k.h"
#include "octet/tensor/types/q6_k.h"
#include "octet/tensor/types/q8_0.h"

namespace octet {

template <typename... Types>
struct TypeList {
  static constexpr int kSize = sizeof...(Types);

  static constexpr bool in_dtype_order() {
    int position = 0;
    return ((static_cast<int>(Types::kDType) == position++) && ...);
  }

  /// The table whose entry for type T is make.operator()<T>().
  template <typename Value, typename Make>
  static constexpr std::array<Value, sizeof...(Types)> table(Make make) {
    return {make.template operator()<Types>()...};
  }
};

using WeightTypes = TypeList<
    types::F32,
    types::F16,
    types::BF16,
    types::Q80,
    types::Q40,
    types::Q41,
    types::Q50,
    types::Q51,
    types::Q4K,
    types::Q5K,
    types::Q6K,
    types::IQ4NL,
    types::IQ4XS,
    types::MXFP4,
    types::NVFP4,
    types::NVFP4ModelOpt>;

static_assert(WeightTypes::kSize == kDTypeCount && WeightTypes::in_dtype_order());

}  // namespace octet
