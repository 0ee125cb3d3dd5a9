// All that a checkpoint says beside its weights, gathered into one set of canonical metadata: the
// tokenizer and the chat template too, wherever a format keeps them. Not for writing. Invariant:
// what the source says itself is never replaced.
#pragma once

#include <memory>
#include <vector>

#include "octet/quantize/checkpoint_plan.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/metadata.h"

namespace octet {

struct PortableMetadata {
  Metadata metadata;
  std::vector<std::shared_ptr<const void>> storage;  // strings of the metadata point into it
};

enum class TokenizerNeed { kRequired, kOptional };  // by GGUF files; by folders

/// `tokenizer_source` (or null) is asked for the tokenizer where `source` has none: drafters in
/// Hugging Face folders have not. Both must outlive the result. Throws Error(kNotFound) when there
/// is no tokenizer at all and one is required, saying how to give one, Error(kUnsupported) for
/// several chat templates of which none is the default.
PortableMetadata gather_metadata(
    const Checkpoint& source,
    const Checkpoint* tokenizer_source,
    TokenizerNeed need = TokenizerNeed::kRequired
);

/// Takes out what the source says of its own types and is not true of those of `plan`: by which
/// importance they were rounded, and general.quant_algo where no NVFP4 weight goes along as it is.
/// Where not every NVFP4 weight has the input scale that W4A4 needs, "NVFP4" becomes
/// "MIXED_PRECISION": those that have one multiply as before. Folders name their algorithm
/// themselves (hf_config_writer.h).
void describe_new_types(Metadata& metadata, const CheckpointPlan& plan);

}  // namespace octet
