// The name by which commands know base/json_writer.h. Nothing of its own.
#pragma once

#include "octet/base/json_writer.h"

namespace octet::cli {

using octet::JsonWriter;

}  // namespace octet::cli
