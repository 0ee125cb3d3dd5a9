// Importance matrices: how much the columns of each weight matter, as the mean square of what is
// multiplied with them. Reads the GGUF form and the older binary one, writes the GGUF form. Not for
// collecting (collect_importance.h). Invariant: numbers are finite, sums and counts not negative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/quantize/checkpoint_plan.h"

namespace octet {

struct ImportanceEntry {
  std::vector<float> sum_squares;  // by column, over `count` rows
  int64_t count = 0;

  /// Mean squares; ones when nothing was seen.
  std::vector<float> weights() const;
};

struct ImportanceMatrix {
  std::map<std::string, ImportanceEntry, std::less<>> entries;  // by tensor name
  std::vector<std::string> datasets;
  int64_t chunk_count = 0;
  int64_t chunk_size = 0;      // tokens
  bool counts_chunks = false;  // the older form: a count of one is a chunk of unknown length
};

/// Throws Error: kNotFound, kMalformed naming the entry, kUnsupported for a GGUF file of another
/// kind.
ImportanceMatrix read_importance(const std::string& path);

/// The same from the bytes of a file, which is called `path` in messages.
ImportanceMatrix parse_importance(std::span<const std::byte> bytes, const std::string& path);

/// Throws Error(kIo), and Error(kMalformed) naming an entry whose sums or counts nobody could read
/// again: they have grown out of float32.
void write_importance(const std::string& path, const ImportanceMatrix& matrix);

/// Makes counts of chunks counts of tokens, so that the matrix may be added to one that counts
/// them. Throws Error(kMalformed) naming an entry whose sums have no room in float32 then.
void count_tokens(ImportanceMatrix& matrix, int64_t chunk_tokens);

/// Refuses a matrix of another model: one with an entry that `model` has no matrix for, or of
/// another width. Throws Error(kMismatch) naming it.
void require_importance_of(const ImportanceMatrix& matrix, const Checkpoint& model);

/// Adds sums, counts and chunks. Throws Error(kMismatch) naming an entry of another length.
void add_importance(ImportanceMatrix& to, const ImportanceMatrix& more);

/// Importance attached to a plan; owns what the plan then points into.
struct AttachedImportance {
  std::vector<std::vector<float>> weights;
  std::vector<std::string> without;  // matrices that could use it and have no entry
};

/// Throws Error(kMismatch) naming a matrix whose entry has another length; tables are exempt.
/// Error(kInvalidArgument) when no weight of the plan uses importance: its type does not search, or
/// its values stay as they are.
AttachedImportance attach_importance(CheckpointPlan& plan, const ImportanceMatrix& matrix);

}  // namespace octet
