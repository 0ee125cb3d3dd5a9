// A checkpoint at rest: metadata and named weights, whatever file format they came from. Readers in
// formats/ translate every dialect to one canonical vocabulary, that of GGUF's gemma4 and dflash
// files:
//   - tensor names as formats/tensor_names.h lists them ("blk.N.attn_q.weight", "fc.weight", ...);
//     a drafter's own head is "output.weight";
//   - metadata keys with general.architecture "gemma4" or "dflash"; the taps are always
//     "dflash.target_layer_ids", zero-based layer outputs;
//   - of drafters also
//     dflash.attention.sliding_window_pattern (array of bool, true = windowed),
//     dflash.attention.causal_pattern (array of bool, true = causal inside the block),
//     dflash.mask_token_id,
//     dflash.block_size,
//     optional dflash.embedding_scale.
// Models bind from this and never see a file.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/mapped_file.h"
#include "octet/tensor/logical_tensor.h"
#include "octet/tensor/metadata.h"

namespace octet {

class Checkpoint {
 public:
  std::string path;  // as the user named it, for messages
  Metadata metadata;

  /// Storage that tensor bytes and metadata strings point into.
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<std::shared_ptr<const void>> storage;

  /// Text files beside the weights (HF directories): "tokenizer.json", "chat_template.jinja", ...
  /// -> path.
  std::map<std::string, std::string, std::less<>> sidecars;

  /// Throws Error(kMalformed) when the name is already present.
  void add(LogicalTensor tensor);
  const LogicalTensor* find(std::string_view name) const;
  /// Throws Error(kNotFound) naming the file and the tensor.
  const LogicalTensor& at(std::string_view name) const;
  std::span<const LogicalTensor> tensors() const { return tensors_; }

  const std::string& architecture() const { return metadata.string("general.architecture"); }

  /// The weight's file pages are no longer needed (no-op for tensors in memory).
  void drop_pages(const LogicalTensor& tensor) const;

 private:
  std::vector<LogicalTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace octet
