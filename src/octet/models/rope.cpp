#include "octet/models/rope.h"

#include <cmath>

#include "octet/base/check.h"

namespace octet {

Rope::Rope(double base, int head_dim, std::span<const float> divisors) {
  constexpr double kNever = 1e20;
  const int pairs = head_dim / 2;
  OCTET_CHECK(divisors.empty() || static_cast<int>(divisors.size()) == pairs);
  for (int i = 0; i < pairs; ++i) {
    const double divisor = divisors.empty() ? 1.0 : static_cast<double>(divisors[i]);
    frequencies_.push_back(std::pow(base, -2.0 * i / head_dim) / divisor);
  }
  if (!divisors.empty()) {
    while (!frequencies_.empty() && static_cast<double>(divisors[frequencies_.size() - 1]) >= kNever
    ) {
      frequencies_.pop_back();
    }
  }
}

void Rope::rotate_to(std::span<const int64_t> positions) {
  const auto count = static_cast<int64_t>(positions.size());
  const Rows cosines = cosines_.resize(count, pairs());
  const Rows sines = sines_.resize(count, pairs());
  for (int64_t r = 0; r < count; ++r) {
    const auto position = static_cast<double>(positions[static_cast<size_t>(r)]);
    for (int64_t i = 0; i < pairs(); ++i) {
      const double angle = position * frequencies_[static_cast<size_t>(i)];
      cosines.row(r)[i] = static_cast<float>(std::cos(angle));
      sines.row(r)[i] = static_cast<float>(std::sin(angle));
    }
  }
}

RopeRows Rope::rows(int64_t rows) const {
  return {cosines_.rows().slice(0, rows), sines_.rows().slice(0, rows)};
}

}  // namespace octet
