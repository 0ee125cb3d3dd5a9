// Weights as NVIDIA Model Optimizer writes them: codes, block scales and a global scale, by
// rounding to nearest, or taken over from a weight that is NVFP4 already. Invariant: weights that
// runtimes fuse (q, k, v; gate, up) share one global scale; bytes do not depend on threads.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "octet/base/function_ref.h"
#include "octet/base/thread_pool.h"
#include "octet/quantize/checkpoint_plan.h"
#include "octet/quantize/transcoder.h"

namespace octet {

/// Names of all weights that share the scales of `name`, itself included.
std::vector<std::string> fused_with(const std::string& name);

class Nvfp4Weights {
 public:
  /// Which weights of `plan` become NVFP4 decides which share a scale.
  Nvfp4Weights(const Checkpoint& source, const CheckpointPlan& plan, ThreadPool& pool)
      : source_(source), plan_(plan), pool_(pool) {}

  /// Hands the codes to `sink` in order and fills `scales` [rows, cols / 16]. Throws
  /// Error(kInvalidArgument) naming the tensor when a value is not finite.
  void write(const LogicalTensor& tensor, std::vector<std::byte>& scales, Transcoder::Sink sink);

  /// The global scale that goes with what write() gives.
  float global_scale(const LogicalTensor& tensor);

  /// The largest magnitude, as BF16, over all weights that share a global scale with `tensor`; 1
  /// where all are zero, because zeros need some scale that is a number.
  float shared_amax(const LogicalTensor& tensor);

 private:
  void copy(const LogicalTensor& tensor, std::vector<std::byte>& scales, Transcoder::Sink sink);
  void round(const LogicalTensor& tensor, std::vector<std::byte>& scales, Transcoder::Sink sink);
  float amax(const LogicalTensor& tensor);
  /// Calls `piece` for rows after rows and drops their pages behind it.
  void for_pieces(
      const LogicalTensor& tensor, FunctionRef<void(int64_t first, int64_t count)> piece
  ) const;

  const Checkpoint& source_;
  const CheckpointPlan& plan_;
  ThreadPool& pool_;
  std::map<std::string, float, std::less<>> amax_;  // by tensor
};

}  // namespace octet
