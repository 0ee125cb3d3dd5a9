#include "octet/formats/hf_config_keys.h"

#include <limits>
#include <optional>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/message_text.h"

namespace octet {

int64_t required_integer(const JsonValue& object, std::string_view key) {
  const std::optional<int64_t> value = object.find_integer(key);
  if (!value) {
    throw Error(ErrorKind::kNotFound, fmt::format("{} is missing; the model needs it", shown(key)));
  }
  return *value;
}

int64_t within(std::string_view key, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{} is {}; expected {} to {}", shown(key), value, low, high)
    );
  }
  return value;
}

void set_u32_from(Metadata& metadata, const std::string& to, std::string_view key, int64_t value) {
  if (value < 0 || value > std::numeric_limits<uint32_t>::max()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{} is {}; expected an unsigned 32-bit number", shown(key), value)
    );
  }
  metadata.set(to, static_cast<uint32_t>(value));
}

void refuse_if_set(const JsonValue& object, std::string_view key, std::string_view why) {
  const JsonValue* value = object.find(key);
  if (value == nullptr || value->boolean() == false || value->integer() == 0) {
    return;
  }
  throw Error(ErrorKind::kUnsupported, fmt::format("{} is set: {}", shown(key), why));
}

std::vector<bool> sliding_layers(const JsonValue& config, int64_t layers) {
  std::vector<bool> sliding;
  const JsonArray* types = config.find_array("layer_types");
  if (types == nullptr) {
    return sliding;
  }
  if (static_cast<int64_t>(types->size()) != layers) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "'layer_types' has {} entries; expected one for each of {} layers",
            types->size(),
            layers
        )
    );
  }
  for (const JsonValue& type : *types) {
    const std::string name =
        type.string() != nullptr ? *type.string() : std::string(type.type_name());
    if (name != "sliding_attention" && name != "full_attention") {
      throw Error(
          ErrorKind::kUnsupported,
          fmt::format(
              "'layer_types' holds {}; expected 'sliding_attention' or 'full_attention'",
              shown(name)
          )
      );
    }
    sliding.push_back(name == "sliding_attention");
  }
  return sliding;
}

RopeParameters read_rope(const JsonValue& rope, double theta_absent) {
  const std::string* type = rope.find_string("rope_type");
  if (type == nullptr) {
    type = rope.find_string("type");
  }
  if (type != nullptr && *type != "default" && *type != "proportional") {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "rope type {} is not supported; expected 'default' or 'proportional'", shown(*type)
        )
    );
  }
  if (rope.find_number("factor").value_or(1.0) != 1.0) {
    throw Error(ErrorKind::kUnsupported, "a rope 'factor' other than 1 is not supported");
  }
  RopeParameters parameters;
  parameters.theta = rope.find_number("rope_theta").value_or(theta_absent);
  parameters.partial_rotary_factor = rope.find_number("partial_rotary_factor").value_or(1.0);
  return parameters;
}

}  // namespace octet
