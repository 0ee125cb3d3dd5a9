// The memory section of every summary: bytes by part, told to people and to programs; and the
// ceiling of --memory-limit, which refuses before anything is loaded. Adds up and formats; what is
// counted where is the models' business. Invariant: parts do not overlap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "octet/cli/json_writer.h"
#include "octet/cli/options.h"
#include "octet/kernels/ops.h"
#include "octet/tensor/checkpoint.h"

namespace octet::cli {

struct MemoryFigures {
  int64_t weights_bytes = 0;
  int64_t drafter_bytes = 0;  // weights of the drafter
  int64_t kv_bytes = 0;       // keys and values of the target
  KvType kv_type = KvType::kBF16;
  int64_t draft_context_bytes = 0;  // what the drafter keeps of the text
  int64_t scratch_bytes = 0;
  int64_t program_bytes = 0;  // resident before weights were loaded: program, tokenizer, metadata
  int64_t tables_bytes = 0;
  bool tables_in_memory = false;  // else they stay in the file, and rows are read as they are used
  int64_t peak_resident_bytes = 0;
};

/// On one line, without a label.
std::string memory_text(const MemoryFigures& memory);
/// A member "memory" of the open JSON object.
void write_memory(JsonWriter& json, const MemoryFigures& memory);

/// "512M", "3.6GB", "4GiB" or a number of bytes; k, M and G are powers of 1000. Throws
/// Error(kInvalidArgument).
int64_t parse_size(std::string_view text);

/// What a command is about to load and hold.
struct MemoryDemand {
  const Checkpoint* target = nullptr;
  const Checkpoint* drafter = nullptr;       // null: none
  std::span<const int64_t> cache_positions;  // of every cache that lives at a time
  int64_t cache_ceiling_bytes = 0;           // the caches are held below it; 0: they are not
  int64_t texts_at_once = 1;                 // in one step
  int64_t cycles = 1;                        // that take steps, each with results of its own
  int64_t vocabulary = 0;
  int64_t program_bytes = 0;
  int64_t other_bytes = 0;               // that the command holds beside the models
  std::string_view context_flag = "-c";  // that asks for fewer positions
};

/// What was planned for a demand.
struct MemoryForecast {
  int64_t scratch_bytes = 0;
  int64_t draft_context_bytes = 0;  // of one text, at most
  int64_t room_bytes = 0;           // that the limit leaves for all caches; 0 without a limit
};
/// Throws Error(kResourceExhausted) with the parts when they need more than the limit in `options`.
MemoryForecast plan_memory(const PairOptions& options, const MemoryDemand& demand, Ops& ops);

}  // namespace octet::cli
