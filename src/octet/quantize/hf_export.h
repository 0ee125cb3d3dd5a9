// Writes a checkpoint as a Hugging Face folder by a plan: config.json, generation_config.json, the
// tokenizer, the chat template, and safetensors in one file or in shards with an index. NVFP4 gets
// the tensors and the hf_quant_config.json of ModelOpt. Invariant: the folder opens with
// open_checkpoint() and appears complete or not at all.
#pragma once

#include <cstdint>

#include "octet/quantize/gguf_export.h"

namespace octet {

inline constexpr int64_t kDefaultShardBytes = 5'000'000'000;

/// No file of weights exceeds `shard_bytes` unless a single tensor does. Throws Error as
/// SafetensorsWriter and Transcoder do, and kUnsupported for what the format has no words for.
void write_hf_checkpoint(
    const ExportRequest& request,
    int64_t shard_bytes,
    ThreadPool& pool,
    const OnExportProgress& on_progress
);

}  // namespace octet
