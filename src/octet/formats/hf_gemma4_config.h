// config.json of Gemma 4 (nested text_config or flat) to canonical metadata. Internal to hf_config.
#pragma once

#include "octet/formats/hf_config.h"

namespace octet {

HfConfig read_gemma4_config(const JsonValue& config);

}  // namespace octet
