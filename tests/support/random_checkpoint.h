// Random weights of any type for tests: encoded by octet's own encoders, owned by the caller or by
// a Checkpoint. Deterministic: the same seed gives the same bytes on every machine. Not for
// goldens, and not a model: models' tests give names and shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "octet/tensor/checkpoint.h"
#include "octet/tensor/encode.h"
#include "octet/tensor/logical_tensor.h"

namespace octet::test {

/// splitmix64, and from it uniform and (nearly) normal numbers.
class RandomNumbers {
 public:
  explicit RandomNumbers(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15ULL;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// In [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  /// Mean 0, variance 1: the sum of twelve uniforms minus six, so never beyond 6.
  double normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) {
      sum += uniform();
    }
    return sum;
  }

 private:
  uint64_t state_;
};

inline std::vector<float> random_values(int64_t count, uint64_t seed, float standard_deviation) {
  RandomNumbers random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& x : values) {
    x = static_cast<float>(random.normal()) * standard_deviation;
  }
  return values;
}

/// A weight and the bytes that it points into.
struct OwnedTensor {
  LogicalTensor tensor;
  std::shared_ptr<const void> storage;
};

/// Encodes `values` (row-major, product(shape) of them) as `dtype`; the last dimension must be a
/// multiple of its block.
inline OwnedTensor encoded_tensor(
    std::string name, DType dtype, std::vector<int64_t> shape, const std::vector<float>& values
) {
  OwnedTensor owned;
  LogicalTensor& tensor = owned.tensor;
  tensor.name = std::move(name);
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  if (dtype == DType::kNVFP4ModelOpt) {
    auto data = std::make_shared<NVFP4ModelOptData>(
        encode_nvfp4_modelopt(values.data(), tensor.rows(), tensor.cols())
    );
    tensor.data = data->codes;
    tensor.block_scales = data->block_scales;
    tensor.scale = data->scale;
    owned.storage = data;
    return owned;
  }
  const int64_t bytes = tensor.rows() * row_bytes(dtype, tensor.cols());
  auto data = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  encode_rows(dtype, values.data(), tensor.rows(), tensor.cols(), nullptr, data->data());
  tensor.data = *data;
  owned.storage = data;
  return owned;
}

inline OwnedTensor random_tensor(
    std::string name,
    DType dtype,
    std::vector<int64_t> shape,
    uint64_t seed,
    float standard_deviation
) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    count *= extent;
  }
  const std::vector<float> values = random_values(count, seed, standard_deviation);
  return encoded_tensor(std::move(name), dtype, std::move(shape), values);
}

/// Adds a weight to `checkpoint`, which keeps its bytes alive.
inline void add_tensor(Checkpoint& checkpoint, OwnedTensor owned) {
  checkpoint.storage.push_back(std::move(owned.storage));
  checkpoint.add(std::move(owned.tensor));
}

}  // namespace octet::test
