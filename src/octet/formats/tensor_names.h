// Which tensors an architecture consists of: canonical and Hugging Face names, and the shapes that
// the metadata call for. One list a model, shared by the validator, the Hugging Face reader and
// tools that write checkpoints. Not for how a tensor is stored: any weight type may stand anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "octet/tensor/metadata.h"

namespace octet {

enum class TensorPresence {
  kRequired,
  kOptional,
  kUnused,  // keys and values of layers that share another layer's cache: legal in a file, never
            // computed with
};

/// A dimension that the metadata do not fix, e.g. the rows of an embedding whose vocabulary size is
/// unknown.
inline constexpr int64_t kAnyDimension = -1;

struct ExpectedTensor {
  std::string name;  // canonical: "blk.3.attn_q.weight"
  std::string
      hf_name;  // without prefix: "layers.3.self_attn.q_proj.weight"; "" when files never hold it
  std::vector<int64_t> shape;  // outermost first
  TensorPresence presence = TensorPresence::kRequired;
};

/// All tensors of the checkpoint that canonical `metadata` describe (general.architecture "gemma4"
/// or "dflash"), in the order in which converters write them. Throws Error when a key is missing or
/// a number cannot be right.
std::vector<ExpectedTensor> expected_tensors(const Metadata& metadata);

/// 12 for "blk.12.ffn_down.weight"; nullopt for tensors outside the layers.
std::optional<int64_t> layer_number(std::string_view name);

/// "[2048, 2560]", with "any" for kAnyDimension.
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace octet
