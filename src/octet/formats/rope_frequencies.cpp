#include "octet/formats/rope_frequencies.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

LogicalTensor make_rope_frequencies(
    Checkpoint& checkpoint, int64_t head_dim, double partial_rotary_factor
) {
  constexpr float kStopped = 1e30F;
  if (!(partial_rotary_factor > 0.0 && partial_rotary_factor <= 1.0)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "partial_rotary_factor is {}; expected above 0, at most 1", partial_rotary_factor
        )
    );
  }
  const int64_t pairs = head_dim / 2;
  const auto turning = static_cast<int64_t>(partial_rotary_factor * static_cast<double>(pairs));
  auto divisors = std::make_shared<std::vector<float>>(static_cast<size_t>(pairs), kStopped);
  for (int64_t pair = 0; pair < turning; ++pair) {
    (*divisors)[static_cast<size_t>(pair)] = 1.0F;
  }
  LogicalTensor tensor;
  tensor.name = kRopeFrequenciesName;
  tensor.dtype = DType::kF32;
  tensor.shape = {pairs};
  tensor.data = std::as_bytes(std::span(*divisors));
  checkpoint.storage.push_back(std::move(divisors));
  return tensor;
}

}  // namespace octet
