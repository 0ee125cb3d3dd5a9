// Writes a checkpoint as one GGUF file by a plan. Invariant: the file opens with open_checkpoint()
// and appears complete or not at all; its bytes depend on source, plan and metadata alone.
#pragma once

#include <string>

#include "octet/base/thread_pool.h"
#include "octet/quantize/checkpoint_plan.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/metadata.h"

namespace octet {

struct ExportRequest {
  const Checkpoint& source;
  const Metadata& metadata;  // canonical, with the tokenizer
  const CheckpointPlan& plan;
  std::string path;
};

/// Throws Error as GgufWriter and Transcoder do.
void write_gguf_checkpoint(
    const ExportRequest& request, ThreadPool& pool, const OnExportProgress& on_progress
);

}  // namespace octet
