// The file of a stored draft head: a GGUF of architecture "octet-draft-head" with one matrix, the
// ids of its rows and the size of the vocabulary they come from (models/dflash/draft_head.h names
// the keys; docs/draft_head.md describes the file). Not a model: open_checkpoint refuses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "octet/base/token.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/dtype.h"

namespace octet {

/// Throws Error naming the file when it is not a GGUF, or holds anything but one matrix of a weight
/// type that octet computes with.
std::shared_ptr<const Checkpoint> open_draft_head(const std::string& path);

struct DraftHeadContents {
  Metadata metadata;  // general.architecture and the draft_head.* keys
  std::string tensor;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // [rows, hidden]
  std::span<const std::byte> data;
};

/// Writes the file, complete or not at all.
void write_draft_head(const std::string& path, const DraftHeadContents& contents);

}  // namespace octet
