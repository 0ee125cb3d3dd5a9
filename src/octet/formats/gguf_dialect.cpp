#include "octet/formats/gguf_dialect.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/formats/canonical_metadata.h"

namespace octet {

namespace {

constexpr std::string_view kMaskTokenKey = "tokenizer.ggml.mask_token_id";

/// A file written anew is whole.
bool is_of_a_split(std::string_view key) {
  return key.starts_with("split.");
}

/// One number where all layers are alike, else the array.
void set_per_layer(Metadata& written, const std::string& key, const std::vector<int64_t>& values) {
  const bool alike = std::all_of(values.begin(), values.end(), [&](int64_t value) {
    return value == values.front();
  });
  if (alike && !values.empty()) {
    written.set(key, static_cast<uint32_t>(values.front()));
  } else {
    set_u32_array(written, key, values);
  }
}

bool any_true(const std::vector<int64_t>& flags) {
  return std::find(flags.begin(), flags.end(), 1) != flags.end();
}

/// Keys of a file in another dialect stay in canonical metadata beside their translations.
bool is_of_another_dialect(std::string_view key) {
  const size_t dot = key.find('.');
  const std::string_view prefix = key.substr(0, dot == std::string_view::npos ? 0 : dot);
  return prefix != "dflash" && is_dflash_dialect(prefix);
}

Metadata target_metadata(const Metadata& canonical) {
  Metadata written;
  for (const auto& [key, value] : canonical.entries()) {
    if (key == "gemma4.feed_forward_length" || key == "gemma4.attention.head_count_kv") {
      set_per_layer(written, key, canonical.find_integers(key).value());
    } else if (key != "gemma4.vocab_size" && !is_of_a_split(key)) {  // the embedding's rows tell it
      written.set(key, value);
    }
  }
  return written;
}

/// Drafters in GGUF number a tap by the layer whose input it is, one more than the layer whose
/// output it is.
std::vector<int32_t> tapped_inputs(const std::vector<int64_t>& outputs) {
  std::vector<int32_t> inputs;
  for (const int64_t output : outputs) {
    inputs.push_back(static_cast<int32_t>(output + 1));
  }
  return inputs;
}

bool is_derived(const Metadata& canonical, std::string_view key) {
  if (key == "dflash.target_layer_ids" || key == "dflash.target_layers" ||
      key == "dflash.mask_token_id") {
    return true;  // written in another form
  }
  if (key == "dflash.attention.causal_pattern") {
    return !any_true(canonical.find_integers(key).value_or(std::vector<int64_t>()));
  }
  const auto* tokens = canonical.find_strings("tokenizer.ggml.tokens");
  return key == "dflash.vocab_size" && tokens != nullptr &&
         canonical.find_integer(key) == static_cast<int64_t>(tokens->size());
}

Metadata drafter_metadata(const Metadata& canonical) {
  Metadata written;
  for (const auto& [key, value] : canonical.entries()) {
    if (!is_of_another_dialect(key) && !is_derived(canonical, key) && !is_of_a_split(key)) {
      written.set(key, value);
    }
  }
  const std::optional<std::vector<int64_t>> taps =
      canonical.find_integers("dflash.target_layer_ids");
  written.set(
      "dflash.target_layers", MetadataArray(tapped_inputs(taps.value_or(std::vector<int64_t>())))
  );
  const int64_t mask = canonical.integer("dflash.mask_token_id");
  if (canonical.find_integer(kMaskTokenKey).value_or(mask) == mask) {
    written.set(std::string(kMaskTokenKey), static_cast<uint32_t>(mask));
  } else {
    written.set("dflash.mask_token_id", static_cast<uint32_t>(mask));
  }
  return written;
}

}  // namespace

Metadata gguf_metadata(const Metadata& canonical) {
  return canonical.string("general.architecture") == "dflash" ? drafter_metadata(canonical)
                                                              : target_metadata(canonical);
}

}  // namespace octet
