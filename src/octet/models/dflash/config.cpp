#include "octet/models/dflash/config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/models/key_reader.h"

namespace octet {
namespace {

constexpr int64_t kMaxBlock = 64;
constexpr int64_t kMaxTokenId = (int64_t{1} << 31) - 1;

/// Relatives of DFlash that share its name: running them as plain DFlash would only ruin their
/// acceptance.
void refuse_relatives(const KeyReader& keys) {
  if (keys.metadata().find_boolean(keys.full("sample_from_anchor")).value_or(false)) {
    keys.fail(ErrorKind::kUnsupported, "sample_from_anchor", "is set, which is not plain DFlash");
  }
  for (const std::string_view scale : {"attention.value_scale", "logit_scale"}) {
    const auto value = keys.metadata().find_number(keys.full(scale));
    if (value && *value != 0.0 && *value != 1.0) {
      keys.fail(ErrorKind::kUnsupported, scale, fmt::format("is {}, expected 1 or none", *value));
    }
  }
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"hidden_activation", "silu"}, {"rope.scaling.type", "none"}};
  for (const auto& [key, expected] : kWords) {
    const std::string* word = keys.metadata().find_string(keys.full(key));
    if (word != nullptr && *word != expected) {
      keys.fail(
          ErrorKind::kUnsupported, key, fmt::format("is '{}', expected '{}'", *word, expected)
      );
    }
  }
}

void read_taps(const KeyReader& keys, DFlashConfig& config) {
  constexpr std::string_view kKey = "target_layer_ids";
  const auto taps = keys.metadata().find_integers(keys.full(kKey));
  if (!taps || taps->empty()) {
    keys.fail(ErrorKind::kNotFound, kKey, "is missing: it lists the target layers to read");
  }
  for (const int64_t tap : *taps) {
    if (tap < 0 || tap >= kMaxLayers) {
      keys.fail(ErrorKind::kMalformed, kKey, fmt::format("contains {}", tap));
    }
    config.taps.push_back(static_cast<int>(tap));
  }
}

void read_softcap(const KeyReader& keys, DFlashConfig& config) {
  if (const auto cap = keys.zero_or_positive("final_logit_softcapping")) {
    config.final_softcap = static_cast<float>(*cap);
  }
}

void read_layers(const KeyReader& keys, DFlashConfig& config) {
  const int64_t count = keys.integer("block_count", 1, kMaxLayers);
  const int64_t window = keys.integer_or("attention.sliding_window", 0, 0, kMaxPositions);
  const std::vector<bool> windowed =
      keys.flags("attention.sliding_window_pattern", count, window > 0);
  const std::vector<bool> causal = keys.flags("attention.causal_pattern", count, false);
  for (size_t l = 0; l < static_cast<size_t>(count); ++l) {
    config.layers.push_back({windowed[l] ? window : 0, causal[l]});
    if (windowed[l] && window < config.block) {
      keys.fail(
          ErrorKind::kUnsupported,
          "attention.sliding_window",
          fmt::format("is {}, expected at least the block of {}", window, config.block)
      );
    }
  }
}

void read_embedding_scale(const KeyReader& keys, DFlashConfig& config) {
  const auto scale = keys.zero_or_positive("embedding_scale");
  if (scale && *scale != 0.0) {  // 0 says: none
    config.embedding_scale = static_cast<float>(*scale);
  }
}

void read_keys(const KeyReader& keys, DFlashConfig& config) {
  refuse_relatives(keys);
  config.hidden = keys.integer("embedding_length", 1, kMaxWidth);
  config.heads = static_cast<int>(keys.integer("attention.head_count", 1, kMaxHeads));
  config.kv_heads = static_cast<int>(keys.integer("attention.head_count_kv", 1, config.heads));
  if (config.heads % config.kv_heads != 0) {
    keys.fail(
        ErrorKind::kMalformed,
        "attention.head_count_kv",
        fmt::format("is {}, expected a divisor of {} heads", config.kv_heads, config.heads)
    );
  }
  config.head_dim = keys.head_dim("attention.key_length", "attention.value_length");
  keys.expect_rope_width("rope.dimension_count", config.head_dim);
  config.feed_forward = keys.integer("feed_forward_length", 1, kMaxWidth);
  config.norm_epsilon = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  config.attention_scale = static_cast<float>(
      keys.positive_or("attention.scale", 1.0 / std::sqrt(static_cast<double>(config.head_dim)))
  );
  config.rope_base = keys.positive("rope.freq_base");
  config.block = static_cast<int>(keys.integer("block_size", 2, kMaxBlock));
  config.mask_token = static_cast<TokenId>(keys.integer("mask_token_id", 0, kMaxTokenId));
  const int64_t vocabulary = keys.integer_or("vocab_size", 0, 0, kMaxTokenId);
  if (vocabulary > 0) {
    config.stated_vocabulary = vocabulary;
  }
  const int64_t target_layers = keys.integer_or("target_block_count", 0, 0, kMaxLayers);
  if (target_layers > 0) {
    config.stated_target_layers = target_layers;
  }
  read_taps(keys, config);
  read_embedding_scale(keys, config);
  read_softcap(keys, config);
  read_layers(keys, config);
}

}  // namespace

int64_t DFlashConfig::context_window() const {
  int64_t widest = 0;
  for (const DFlashLayerConfig& layer : layers) {
    if (layer.window == 0) {
      return 0;
    }
    widest = std::max(widest, layer.window);
  }
  return widest;
}

DFlashConfig read_dflash_config(const Checkpoint& checkpoint) {
  DFlashConfig config;
  try {
    read_keys(KeyReader(checkpoint.metadata, "dflash"), config);
  } catch (Error& error) {
    error.add_context(checkpoint.path);
    throw;
  }
  const LogicalTensor* head = checkpoint.find("output.weight");
  if (head != nullptr) {
    config.own_vocabulary = head->rows();
  }
  return config;
}

std::vector<PairCheck> pair_checks(const TargetShape& target, const DFlashConfig& drafter) {
  std::vector<PairCheck> checks = {
      {"hidden size",
       fmt::to_string(target.hidden),
       fmt::to_string(drafter.hidden),
       drafter.hidden == target.hidden}};
  checks.push_back(
      {"list of taps",
       fmt::format("layers below {}", target.layers),
       fmt::format("{}", fmt::join(drafter.taps, ", ")),
       *std::max_element(drafter.taps.begin(), drafter.taps.end()) < target.layers}
  );
  checks.push_back(
      {"mask token",
       fmt::format("an id below {}", target.vocabulary),
       fmt::to_string(drafter.mask_token),
       drafter.mask_token < target.vocabulary}
  );
  checks.push_back(
      {"head",
       fmt::format("none, or {} rows", target.vocabulary),
       drafter.own_vocabulary ? fmt::format("{} rows", *drafter.own_vocabulary) : "none",
       drafter.own_vocabulary.value_or(target.vocabulary) == target.vocabulary}
  );
  if (drafter.stated_vocabulary) {
    checks.push_back(
        {"vocabulary",
         fmt::format("{} tokens", target.vocabulary),
         fmt::format("{} tokens", *drafter.stated_vocabulary),
         *drafter.stated_vocabulary == target.vocabulary}
    );
  }
  if (drafter.stated_target_layers) {
    checks.push_back(
        {"target",
         fmt::format("of {} layers", target.layers),
         fmt::format("of {} layers", *drafter.stated_target_layers),
         *drafter.stated_target_layers == target.layers}
    );
  }
  return checks;
}

void require_fit(std::span<const PairCheck> checks, std::string_view drafter_path) {
  for (const PairCheck& check : checks) {
    if (!check.fits) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "{}: the drafter does not fit the target: its {} is {}, expected {}",
              drafter_path,
              check.what,
              check.found,
              check.expected
          )
      );
    }
  }
}

void check_pair(
    const TargetShape& target, const DFlashConfig& drafter, std::string_view drafter_path
) {
  require_fit(pair_checks(target, drafter), drafter_path);
}

}  // namespace octet
