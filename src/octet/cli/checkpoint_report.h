// What `octet inspect` knows about checkpoints: sizes by type, what a token costs, and whether a
// drafter fits a target. Looks at metadata and tensor headers only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/models/dflash/config.h"
#include "octet/tensor/checkpoint.h"

namespace octet::cli {

struct TypeTotals {
  std::string type;
  int64_t tensors = 0;
  int64_t parameters = 0;
  int64_t bytes = 0;
};

struct CheckpointReport {
  std::string path;
  std::string architecture;
  int64_t parameters = 0;
  int64_t bytes = 0;
  int64_t token_bytes =
      0;  // weights that one decoded token reads: all but tables that are gathered by row
  int64_t kv_token_bytes = 0;   // BF16 keys and values that every further position adds
  int64_t kv_window_bytes = 0;  // and those of windowed layers, a fixed amount
  std::vector<TypeTotals> types;
};

CheckpointReport report_on(const Checkpoint& checkpoint);

struct PairReport {
  std::string target;
  std::string drafter;
  std::vector<PairCheck> checks;
  bool fits() const;
};

PairReport check_pair_of(const Checkpoint& target, const Checkpoint& drafter);

/// Control characters as escapes, so that a text of a file stays on its line and cannot command a
/// terminal.
std::string one_line(std::string_view text);

/// A value on one line; long texts and arrays are cut and say how much there is.
std::string metadata_text(const MetadataValue& value);

}  // namespace octet::cli
