// A matrix prepared once for products by a backend; opaque to models. The backend decides whether
// it uses the file's bytes in place or a packed copy; when it packs, the file's pages are dropped,
// so a weight is never resident twice.
#pragma once

#include <cstdint>
#include <string>

#include "octet/tensor/dtype.h"

namespace octet {

class Weight {
 public:
  virtual ~Weight() = default;

  std::string name;
  DType dtype = DType::kF32;
  int64_t rows = 0;                // output features
  int64_t cols = 0;                // input features
  int64_t resident_bytes = 0;      // bytes that one product reads, packed or in place
  bool packed = false;             // false: the file's own bytes are used
  bool float_activations = false;  // products take activations as floats, not as integers
};

}  // namespace octet
