#include "octet/models/load_model.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {
namespace {

void expect_architecture(
    const Checkpoint& checkpoint, std::string_view expected, std::string_view role
) {
  const std::string* found = checkpoint.metadata.find_string("general.architecture");
  if (found == nullptr || *found != expected) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "{}: the architecture is {}, expected {} for a {}",
            checkpoint.path,
            found == nullptr ? "not stated" : "'" + *found + "'",
            expected,
            role
        )
    );
  }
}

}  // namespace

std::unique_ptr<TargetModel> load_target(
    std::shared_ptr<const Checkpoint> checkpoint, Ops& ops, TargetOptions options
) {
  expect_architecture(*checkpoint, "gemma4", "target");
  return std::make_unique<Gemma4Model>(std::move(checkpoint), ops, std::move(options));
}

std::unique_ptr<DraftModel> load_drafter(
    std::shared_ptr<const Checkpoint> checkpoint,
    Ops& ops,
    TargetModel& target,
    DrafterOptions options
) {
  expect_architecture(*checkpoint, "dflash", "drafter");
  return std::make_unique<DFlashModel>(std::move(checkpoint), ops, target, std::move(options));
}

}  // namespace octet
