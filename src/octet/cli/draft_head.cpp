#include "octet/cli/draft_head.h"

#include <filesystem>

#include <fmt/format.h>

#include "octet/formats/draft_head_file.h"
#include "octet/models/dflash/draft_head.h"
#include "octet/tensor/dtype.h"

namespace octet::cli {

std::string draft_head_path(const Checkpoint& drafter) {
  std::string path = drafter.path;
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path + ".head.gguf";
}

std::shared_ptr<const Checkpoint> choose_draft_head(
    const std::string& choice, const Checkpoint& drafter
) {
  if (choice == kDraftHeadFull) {
    return nullptr;
  }
  if (choice != kDraftHeadAuto) {
    return open_draft_head(choice);
  }
  const std::string beside = draft_head_path(drafter);
  return std::filesystem::exists(beside) ? open_draft_head(beside) : nullptr;
}

std::string describe_draft_head(const Checkpoint& head) {
  const LogicalTensor& tensor = head.at(kDraftHeadTensor);
  return fmt::format(
      "{} of {} tokens in {} ({})",
      tensor.rows(),
      head.metadata.integer(kDraftHeadVocabularyKey),
      dtype_facts(tensor.dtype).name,
      head.path
  );
}

}  // namespace octet::cli
