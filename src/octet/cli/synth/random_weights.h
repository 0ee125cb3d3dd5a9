// Random weights of any supported type, made as fast as a disk takes them: for each (type, size of
// values) a pool of valid random blocks is made once, and a tensor is a random sequence of them.
// Not a quantizer. Invariant: every block decodes to finite values; the bytes depend on the seed
// and the order of calls only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/tensor/dtype.h"

namespace octet::cli {

/// xorshift64*: a few picoseconds a byte, good enough for weights nobody trains.
class FastRandom {
 public:
  explicit FastRandom(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL | 1U) {}
  uint64_t next() {
    state_ ^= state_ >> 12U;
    state_ ^= state_ << 25U;
    state_ ^= state_ >> 27U;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  /// Uniform in [0, bound).
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(((next() >> 32U) * bound) >> 32U); }

 private:
  uint64_t state_;
};

class RandomWeights {
 public:
  explicit RandomWeights(uint64_t seed) : random_(seed) {}

  /// Hands `values` values of zero mean and this standard deviation to `sink`, piece by piece.
  /// Throws Error(kUnsupported) for a type that no recipe uses.
  void write(
      DType dtype,
      double deviation,
      int64_t values,
      FunctionRef<void(std::span<const std::byte>)> sink
  );

 private:
  using Pool = std::vector<std::byte>;
  const Pool& pool(DType dtype, double deviation);

  FastRandom random_;
  std::map<std::pair<DType, double>, Pool> pools_;
};

/// `values` times the same value, as F32 or BF16.
std::vector<std::byte> constant_values(DType dtype, float value, int64_t values);

}  // namespace octet::cli
