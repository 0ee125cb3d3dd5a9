#include "octet/formats/draft_head_file.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/gguf_types.h"
#include "octet/formats/gguf_writer.h"
#include "octet/formats/message_text.h"

namespace octet {

std::shared_ptr<const Checkpoint> open_draft_head(const std::string& path) {
  GgufFile file = read_gguf(path);
  if (file.tensors.size() != 1) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{}: a draft head has one tensor, this file {}", path, file.tensors.size())
    );
  }
  const GgufTensor& source = file.tensors.front();
  const std::optional<DType> dtype = dtype_from_gguf_id(source.type_id);
  if (!dtype || source.shape.size() != 2) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}: tensor {} is not a matrix of a weight type that octet computes with",
            path,
            shown(source.name)
        )
    );
  }
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = path;
  checkpoint->metadata = std::move(file.metadata);
  checkpoint->files.push_back(file.mapping);
  LogicalTensor tensor;
  tensor.name = source.name;
  tensor.dtype = *dtype;
  tensor.shape = source.shape;
  tensor.data = source.data;
  checkpoint->add(std::move(tensor));
  return checkpoint;
}

void write_draft_head(const std::string& path, const DraftHeadContents& contents) {
  GgufWriter writer(path, contents.metadata, {{contents.tensor, contents.dtype, contents.shape}});
  writer.write_tensor(contents.tensor, contents.data);
  writer.finish();
}

}  // namespace octet
