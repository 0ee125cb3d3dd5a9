// Takes weights out of a checkpoint for a model: checks shapes, decodes norms, prepares matrices,
// counts bytes and reports progress. Can also count alone, before anything is prepared. Knows no
// architecture. Errors name the file and the tensor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "octet/kernels/ops.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

/// Called before each weight is prepared, and once at the end with done == total.
using LoadProgress =
    std::function<void(std::string_view name, int64_t done_bytes, int64_t total_bytes)>;

/// Where tables live: rows are read from the file's mapping, or from memory: a copy, unless a
/// prepared matrix holds them already.
enum class TablePlace { kFile, kMemory };
/// kCount prepares nothing: weights have names, shapes and sizes only.
enum class LoadMode { kPrepare, kCount };

class WeightLoader {
 public:
  WeightLoader(
      const Checkpoint& checkpoint,
      Ops& ops,
      LoadProgress progress,
      TablePlace tables = TablePlace::kFile,
      LoadMode mode = LoadMode::kPrepare
  );

  const Checkpoint& checkpoint() const { return checkpoint_; }
  TablePlace tables() const { return tables_; }
  bool has(std::string_view name) const { return checkpoint_.find(name) != nullptr; }

  /// A matrix [rows, cols] prepared for products.
  std::unique_ptr<Weight> matrix(std::string_view name, int64_t rows, int64_t cols);
  /// A vector [size] as floats.
  std::vector<float> vector(std::string_view name, int64_t size);
  /// A vector [size] as floats, empty when the file has none.
  std::vector<float> optional_vector(std::string_view name, int64_t size);
  /// A table [any, cols] whose rows are read one by one.
  std::shared_ptr<const LogicalTensor> table(std::string_view name, int64_t cols);

  void finish();

  int64_t weights_bytes() const { return weights_bytes_; }
  int64_t tables_bytes() const { return tables_bytes_; }

 private:
  std::unique_ptr<Weight> count(const LogicalTensor& tensor) const;
  [[noreturn]] void wrong_shape(const LogicalTensor& tensor, std::string_view expected) const;

  const Checkpoint& checkpoint_;
  Ops& ops_;
  LoadProgress progress_;
  TablePlace tables_;
  LoadMode mode_;
  int64_t total_bytes_ = 0;
  int64_t done_bytes_ = 0;
  int64_t weights_bytes_ = 0;
  int64_t tables_bytes_ = 0;
};

}  // namespace octet
