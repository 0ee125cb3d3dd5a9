// Turns the rows of one stored weight into another weight type, in pieces, on all threads: the
// inner loop of converting and quantizing. Knows no files. Invariant: the bytes depend on the
// weight, the type and the importance alone, never on the number of threads or the size of pieces;
// memory is a few pieces, however large the weight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "octet/base/function_ref.h"
#include "octet/base/thread_pool.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/dtype.h"

namespace octet {

/// What a weight is to become.
struct TranscodeTarget {
  DType dtype = DType::kBF16;
  std::span<const float> importance;  // [cols], or empty
};

class Transcoder {
 public:
  /// Pages of `source` that have been read are dropped as it goes.
  Transcoder(const Checkpoint& source, ThreadPool& pool) : source_(source), pool_(pool) {}

  /// Receives the bytes of the rows in order, piece by piece, and how many rows they are.
  using Sink = FunctionRef<void(std::span<const std::byte> bytes, int64_t rows)>;

  /// Values that the type holds already are copied bit by bit (NVFP4 also between its two layouts),
  /// others are decoded and encoded. Throws Error(kInvalidArgument) naming the tensor when a value
  /// is not finite, Error(kUnsupported) for NVFP4 of ModelOpt, which needs whole tensors.
  void transcode(const LogicalTensor& tensor, const TranscodeTarget& target, Sink sink);

 private:
  using EncodeRows = FunctionRef<void(int64_t first, int64_t count, std::byte* out)>;

  void for_pieces(const LogicalTensor& tensor, int64_t row_bytes, EncodeRows encode, Sink sink);

  const Checkpoint& source_;
  ThreadPool& pool_;
};

/// Gives back the file's pages of the first `rows` rows, which have been read. All of them, each
/// time: reading a later row may map pages before it, and rows seldom begin where pages do.
void drop_first_rows(const Checkpoint& source, const LogicalTensor& tensor, int64_t rows);

/// Whether every value stays as it is: the same type, a wider float, or the other layout of NVFP4.
bool is_exact_copy(const LogicalTensor& tensor, DType dtype);

}  // namespace octet
