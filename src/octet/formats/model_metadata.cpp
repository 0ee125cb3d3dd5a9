#include "octet/formats/model_metadata.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

namespace {

constexpr int64_t kMaxLayers = 1024;
constexpr int64_t kMaxSize =
    1 << 24;  // of one dimension; products of two and a layer count fit 64 bits
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 8192;

struct Range {
  int64_t low;
  int64_t high;
};

int64_t in_range(const std::string& key, int64_t value, Range range) {
  if (value < range.low || value > range.high) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("metadata key '{}' is {}; expected {} to {}", key, value, range.low, range.high)
    );
  }
  return value;
}

[[noreturn]] void unsupported(std::string message) {
  throw Error(ErrorKind::kUnsupported, std::move(message));
}

/// Reads keys below one architecture prefix.
class Keys {
 public:
  Keys(const Metadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  int64_t integer(const char* name, Range range) const {
    return in_range(prefix_ + name, metadata_.integer(prefix_ + name), range);
  }

  int64_t integer_or(const char* name, int64_t absent, Range range) const {
    return in_range(prefix_ + name, metadata_.find_integer(prefix_ + name).value_or(absent), range);
  }

  std::vector<int64_t> per_layer(const char* name, int64_t layers, Range range) const {
    std::vector<int64_t> values = metadata_.integers_per_layer(prefix_ + name, layers);
    for (const int64_t value : values) {
      in_range(prefix_ + name, value, range);
    }
    return values;
  }

  /// An array of at least one integer, of any length.
  std::vector<int64_t> list(const char* name, Range range) const {
    const std::optional<std::vector<int64_t>> values = metadata_.find_integers(prefix_ + name);
    if (!values || values->empty()) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("metadata key '{}{}' must list at least one number", prefix_, name)
      );
    }
    for (const int64_t value : *values) {
      in_range(prefix_ + name, value, range);
    }
    return *values;
  }

  double positive(const char* name) const {
    const double value = metadata_.number(prefix_ + name);
    if (!std::isfinite(value) || value <= 0.0) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("metadata key '{}{}' is {}; expected a positive number", prefix_, name, value)
      );
    }
    return value;
  }

  /// A key that octet can only follow when it says `expected` (or nothing).
  void require_if_present(const char* name, int64_t expected, const char* why) const {
    const std::optional<int64_t> value = metadata_.find_integer(prefix_ + name);
    if (value && *value != expected) {
      unsupported(fmt::format(
          "metadata key '{}{}' is {}; only {} is supported: {}",
          prefix_,
          name,
          *value,
          expected,
          why
      ));
    }
  }

  /// Head dimension: even, because rotary embeddings turn pairs, and the same for keys and values.
  int64_t head_dim(const char* key_name, const char* value_name, const char* rope_name) const {
    const int64_t size = integer(key_name, {2, kMaxHeadDim});
    if (size % 2 != 0) {
      unsupported(
          fmt::format("metadata key '{}{}' is {}; expected an even number", prefix_, key_name, size)
      );
    }
    require_if_present(value_name, size, "values are as wide as keys");
    require_if_present(rope_name, size, "rotary embeddings span the whole head");
    return size;
  }

  void no_rope_scaling() const {
    const std::string* type = metadata_.find_string(prefix_ + "rope.scaling.type");
    if (type != nullptr && *type != "none") {
      unsupported(fmt::format(
          "metadata key '{}rope.scaling.type' is '{}'; only 'none' is supported", prefix_, *type
      ));
    }
  }

 private:
  const Metadata& metadata_;
  std::string prefix_;
};

void check_head_groups(int64_t heads, int64_t kv_heads) {
  if (heads % kv_heads != 0) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{} query heads cannot share {} key/value heads evenly (attention.head_count, "
            "head_count_kv)",
            heads,
            kv_heads
        )
    );
  }
}

/// Each layer without keys of its own reads those of the last own layer of its kind: there must be
/// one.
void check_donors(const Gemma4Dimensions& d) {
  const int64_t own = d.layers - d.shared_layers;
  for (int64_t layer = own; layer < d.layers; ++layer) {
    bool found = false;
    for (int64_t donor = 0; donor < own; ++donor) {
      found =
          found || d.sliding[static_cast<size_t>(donor)] == d.sliding[static_cast<size_t>(layer)];
    }
    if (!found) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "layer {} shares keys and values (gemma4.attention.shared_kv_layers is {}), but none "
              "of the first {} "
              "layers has its attention kind",
              layer,
              d.shared_layers,
              own
          )
      );
    }
  }
}

}  // namespace

int64_t layer_count(const Metadata& metadata, const std::string& architecture) {
  return Keys(metadata, architecture).integer("block_count", {1, kMaxLayers});
}

Gemma4Dimensions gemma4_dimensions(const Metadata& metadata) {
  const Keys keys(metadata, "gemma4");
  Gemma4Dimensions d;
  d.layers = layer_count(metadata, "gemma4");
  d.hidden = keys.integer("embedding_length", {1, kMaxSize});
  d.vocabulary = keys.integer("vocab_size", {1, kMaxSize});
  d.heads = keys.integer("attention.head_count", {1, kMaxHeads});
  d.head_dim_full =
      keys.head_dim("attention.key_length", "attention.value_length", "rope.dimension_count");
  d.head_dim_sliding = keys.head_dim(
      "attention.key_length_swa", "attention.value_length_swa", "rope.dimension_count_swa"
  );
  d.per_layer_input = keys.integer_or("embedding_length_per_layer_input", 0, {0, kMaxSize});
  d.shared_layers = keys.integer_or("attention.shared_kv_layers", 0, {0, d.layers - 1});
  d.ffn = keys.per_layer("feed_forward_length", d.layers, {1, kMaxSize});
  d.kv_heads = keys.per_layer("attention.head_count_kv", d.layers, {1, kMaxHeads});
  for (const int64_t flag : keys.per_layer("attention.sliding_window_pattern", d.layers, {0, 1})) {
    d.sliding.push_back(flag != 0);
  }
  for (const int64_t kv_heads : d.kv_heads) {
    check_head_groups(d.heads, kv_heads);
  }
  keys.integer("context_length", {1, INT32_MAX});
  keys.integer("attention.sliding_window", {1, INT32_MAX});
  keys.positive("attention.layer_norm_rms_epsilon");
  keys.positive("rope.freq_base");
  keys.positive("rope.freq_base_swa");
  keys.no_rope_scaling();
  keys.require_if_present("expert_count", 0, "octet has no mixture-of-experts layers");
  check_donors(d);
  return d;
}

DflashDimensions dflash_dimensions(const Metadata& metadata) {
  const Keys keys(metadata, "dflash");
  DflashDimensions d;
  d.layers = layer_count(metadata, "dflash");
  d.hidden = keys.integer("embedding_length", {1, kMaxSize});
  d.ffn = keys.integer("feed_forward_length", {1, kMaxSize});
  d.heads = keys.integer("attention.head_count", {1, kMaxHeads});
  d.kv_heads = keys.integer("attention.head_count_kv", {1, kMaxHeads});
  check_head_groups(d.heads, d.kv_heads);
  d.head_dim =
      keys.head_dim("attention.key_length", "attention.value_length", "rope.dimension_count");
  d.vocabulary = keys.integer_or("vocab_size", 0, {0, kMaxSize});
  d.taps = static_cast<int64_t>(keys.list("target_layer_ids", {0, kMaxLayers - 1}).size());
  keys.integer("block_size", {2, 1024});
  keys.integer("mask_token_id", {0, kMaxSize - 1});
  keys.integer("attention.sliding_window", {0, INT32_MAX});
  keys.per_layer("attention.sliding_window_pattern", d.layers, {0, 1});
  keys.per_layer("attention.causal_pattern", d.layers, {0, 1});
  keys.positive("attention.layer_norm_rms_epsilon");
  keys.positive("rope.freq_base");
  keys.no_rope_scaling();
  return d;
}

}  // namespace octet
