// config.json of a DFlash drafter (dflash_config nested or flat) to canonical metadata. Internal to
// hf_config.
#pragma once

#include "octet/formats/hf_config.h"

namespace octet {

HfConfig read_dflash_config(const JsonValue& config);

}  // namespace octet
