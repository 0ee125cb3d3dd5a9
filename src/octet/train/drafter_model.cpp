#include "octet/train/drafter_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/models/gemma4/config.h"
#include "octet/models/load_model.h"

namespace octet::train {
namespace {

constexpr const char* kMaskKey = "tokenizer.ggml.mask_token_id";
constexpr int64_t kUsualTaps = 4;

uint32_t narrow(int64_t value) {
  return static_cast<uint32_t>(value);
}

/// Evenly over the target's layers, the last one left out: its output has no use for a drafter.
std::vector<uint32_t> taps_of(const DrafterShape& shape, int64_t layers) {
  std::vector<uint32_t> taps;
  for (const int64_t tap : shape.taps) {
    if (tap < 0 || tap >= layers) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("--taps names layer {}, the target has 0 to {}", tap, layers - 1)
      );
    }
    taps.push_back(narrow(tap));
  }
  const int64_t count = std::min(kUsualTaps, layers - 1);
  for (int64_t i = 0; shape.taps.empty() && i < count; ++i) {
    taps.push_back(narrow((i + 1) * (layers - 1) / (count + 1)));
  }
  return taps;
}

/// The tokenizer alone: a template and the target's own keys say nothing about a drafter.
PortableMetadata tokenizer_of(const Checkpoint& target) {
  PortableMetadata all = gather_metadata(target, nullptr);
  PortableMetadata tokenizer;
  tokenizer.storage = std::move(all.storage);
  for (const auto& [key, value] : all.metadata.entries()) {
    if (key.starts_with("tokenizer.ggml.")) {
      tokenizer.metadata.set(key, value);
    }
  }
  return tokenizer;
}

int64_t mask_token(const Metadata& tokenizer) {
  const auto mask = tokenizer.find_integer(kMaskKey);
  if (!mask) {
    throw Error(
        ErrorKind::kNotFound,
        "the target's tokenizer names no mask token, which a drafter's blocks are made of"
    );
  }
  return *mask;
}

}  // namespace

ModelFrame new_drafter_frame(const Checkpoint& target, const DrafterShape& shape) {
  const Gemma4Config config = read_gemma4_config(target);
  ModelFrame result;
  result.portable = tokenizer_of(target);
  Metadata& m = result.portable.metadata;
  const auto layers = static_cast<size_t>(shape.layers);
  m.set("general.architecture", std::string("dflash"));
  m.set("dflash.block_count", narrow(shape.layers));
  m.set("dflash.context_length", narrow(config.context_length));
  m.set("dflash.embedding_length", narrow(config.hidden));
  m.set("dflash.vocab_size", narrow(config.vocabulary));
  m.set(
      "dflash.feed_forward_length",
      narrow(shape.feed_forward > 0 ? shape.feed_forward : 2 * config.hidden)
  );
  m.set("dflash.attention.head_count", narrow(shape.heads));
  m.set("dflash.attention.head_count_kv", narrow(shape.kv_heads));
  m.set("dflash.attention.key_length", narrow(shape.head_dim));
  m.set("dflash.attention.value_length", narrow(shape.head_dim));
  m.set("dflash.attention.layer_norm_rms_epsilon", 1e-6F);
  m.set("dflash.rope.freq_base", static_cast<float>(shape.rope_base));
  m.set("dflash.attention.sliding_window", narrow(shape.window));
  m.set(
      "dflash.attention.sliding_window_pattern",
      MetadataArray(std::vector<bool>(layers, shape.window > 0))
  );
  m.set("dflash.attention.causal_pattern", MetadataArray(std::vector<bool>(layers, false)));
  m.set("dflash.block_size", narrow(shape.block));
  m.set("dflash.mask_token_id", narrow(mask_token(m)));
  m.set("dflash.target_layer_ids", MetadataArray(taps_of(shape, config.layer_count())));
  const double scale = shape.embedding_scale > 0.0 ? shape.embedding_scale
                                                   : std::sqrt(static_cast<double>(config.hidden));
  m.set("dflash.embedding_scale", static_cast<float>(scale));
  return result;
}

ModelFrame drafter_frame(
    const Checkpoint& drafter, const Checkpoint& target, float embedding_scale
) {
  ModelFrame result;
  result.portable = tokenizer_of(target);
  for (const auto& [key, value] : drafter.metadata.entries()) {
    if (!key.starts_with("tokenizer.")) {
      result.portable.metadata.set(key, value);
    }
  }
  result.portable.metadata.set("dflash.embedding_scale", embedding_scale);
  return result;
}

std::unique_ptr<DFlashDrafter> drafter_in_engine(
    const Parameters& parameters, const ModelFrame& frame, Ops& ops, TargetModel& target
) {
  const auto checkpoint = as_checkpoint(parameters, frame, StoredType::kBF16);
  return std::make_unique<DFlashDrafter>(
      load_drafter(checkpoint, ops, target, {}), target.final_softcap()
  );
}

}  // namespace octet::train
