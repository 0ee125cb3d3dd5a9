// Collects an importance matrix: runs text through a target and adds up, for every matrix of its
// layers, the squares of what it is multiplied with. Not for reading or writing matrices
// (importance.h). Invariant: every token counts once in every matrix that multiplies it; matrices
// that a model never uses (keys and values of layers that share a cache) have no entry.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/kernels/forwarding_ops.h"
#include "octet/models/target_model.h"
#include "octet/quantize/importance.h"
#include "octet/quantize/text_chunks.h"

namespace octet {

/// Watches the products of the backend that it wraps. Only weights named "blk.*" are recorded.
class ImportanceOps final : public ForwardingOps {
 public:
  explicit ImportanceOps(std::unique_ptr<Ops> ops) : ForwardingOps(std::move(ops)) {}

  void matmul(ConstRows x, std::span<const Product> products) override;

  /// What was recorded so far, as entries of a matrix.
  std::map<std::string, ImportanceEntry, std::less<>> entries() const;

 private:
  struct Sums {
    std::vector<double> squares;  // by column
    int64_t rows = 0;
  };
  std::map<std::string, Sums, std::less<>> sums_;
};

/// Runs chunks of `texts` (without begin tokens; `bos` is put before each chunk) through `target`,
/// whose backend is `ops`. Throws Error as cut_chunks does.
ImportanceMatrix collect_importance(
    TargetModel& target,
    const ImportanceOps& ops,
    std::span<const std::vector<TokenId>> texts,
    TokenId bos,
    const ChunkOptions& options,
    const OnChunk& on_chunk
);

}  // namespace octet
