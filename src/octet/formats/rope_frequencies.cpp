#include "octet/formats/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

namespace {

constexpr float kStoppedDivisor = 1e30F;  // an angle of zero in effect
constexpr int64_t kBillion = 1'000'000'000;

int64_t turning_pairs(double partial_rotary_factor, int64_t pairs) {
  return static_cast<int64_t>(partial_rotary_factor * static_cast<double>(pairs));
}

}  // namespace

LogicalTensor make_rope_frequencies(
    Checkpoint& checkpoint, int64_t head_dim, double partial_rotary_factor
) {
  if (!(partial_rotary_factor > 0.0 && partial_rotary_factor <= 1.0)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "partial_rotary_factor is {}; expected above 0, at most 1", partial_rotary_factor
        )
    );
  }
  const int64_t pairs = head_dim / 2;
  const int64_t turning = turning_pairs(partial_rotary_factor, pairs);
  auto divisors = std::make_shared<std::vector<float>>(static_cast<size_t>(pairs), kStoppedDivisor);
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

double partial_rotary_factor_of(const LogicalTensor& divisors) {
  std::vector<float> values(static_cast<size_t>(divisors.elements()));
  decode_rows(divisors, 0, 1, values.data());
  const auto first_stopped =
      std::find_if(values.begin(), values.end(), [](float value) { return value != 1.0F; });
  const bool rest_stopped = std::all_of(first_stopped, values.end(), [](float value) {
    return value == kStoppedDivisor;
  });
  const int64_t turning = first_stopped - values.begin();
  if (!rest_stopped || turning == 0) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tensor '{}' is not ones followed by 1e30, so no partial_rotary_factor says the same; "
            "keep this model as GGUF",
            divisors.name
        )
    );
  }
  // Rounding of the quotient must not lose a pair when a reader multiplies: it is rounded up, to
  // as many decimals as JSON is written with, and once more where the product is still below.
  const auto pairs = static_cast<int64_t>(values.size());
  int64_t billionths = (turning * kBillion + pairs - 1) / pairs;
  while (turning_pairs(static_cast<double>(billionths) / kBillion, pairs) < turning) {
    ++billionths;
  }
  return static_cast<double>(billionths) / kBillion;
}

}  // namespace octet
