// Required members of a config.json object, with messages that name the key. Internal to the
// hf_*_config sources.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/formats/json_value.h"
#include "octet/tensor/metadata.h"

namespace octet {

/// Throws Error(kNotFound) naming the key when absent.
int64_t required_integer(const JsonValue& object, std::string_view key);

/// Returns `value`. Throws Error(kMalformed) naming the key when it lies outside [low, high].
int64_t within(std::string_view key, int64_t value, int64_t low, int64_t high);

/// A number that the models take as u32. Throws Error(kMalformed) when negative or too large.
void set_u32_from(Metadata& metadata, const std::string& to, std::string_view key, int64_t value);

/// Throws Error(kUnsupported) when `key` is present with a value other than null, false or 0.
void refuse_if_set(const JsonValue& object, std::string_view key, std::string_view why);

/// "layer_types" as true = sliding; empty when the key is absent. Throws for unknown names or
/// another length.
std::vector<bool> sliding_layers(const JsonValue& config, int64_t layers);

/// One entry of "rope_parameters", or of the flat keys.
struct RopeParameters {
  double theta = 0.0;
  double partial_rotary_factor = 1.0;
};

/// Reads rope parameters from `rope`; refuses scaled variants. `theta_absent` stands in when there
/// is no theta.
RopeParameters read_rope(const JsonValue& rope, double theta_absent);

}  // namespace octet
