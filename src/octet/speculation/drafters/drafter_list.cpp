#include "octet/speculation/drafters/drafter_list.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/speculation/drafters/dflash_drafter.h"
#include "octet/speculation/drafters/no_drafter.h"
#include "octet/speculation/drafters/scripted_drafter.h"

namespace octet {
namespace {

std::unique_ptr<Drafter> make_none(const TargetModel& /*target*/, DrafterInputs /*inputs*/) {
  return std::make_unique<NoDrafter>();
}

std::unique_ptr<Drafter> make_dflash(const TargetModel& target, DrafterInputs inputs) {
  return std::make_unique<DFlashDrafter>(std::move(inputs.draft_model), target.final_softcap());
}

template <Script kScript>
std::unique_ptr<Drafter> make_scripted(const TargetModel& target, DrafterInputs inputs) {
  auto drafter =
      std::make_unique<ScriptedDrafter>(kScript, target.shape().vocabulary, inputs.max_drafts);
  for (std::vector<TokenId>& reference : inputs.references) {
    drafter->add_reference(std::move(reference));
  }
  return drafter;
}

constexpr std::array<DrafterKind, 5> kKinds = {{
    {"none", "plain decoding", false, false, make_none},
    {"dflash", "the trained block drafter", true, false, make_dflash},
    {"oracle", "proposes a given text: all accepted", false, true, make_scripted<Script::kOracle>},
    {"liar",
     "never proposes the given text: none accepted",
     false,
     true,
     make_scripted<Script::kLiar>},
    {"half", "right for three rows, then wrong", false, true, make_scripted<Script::kHalf>},
}};

}  // namespace

std::span<const DrafterKind> drafter_kinds() {
  return kKinds;
}

std::unique_ptr<Drafter> new_drafter(
    std::string_view name, const TargetModel& target, DrafterInputs inputs
) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(), [&](const DrafterKind& k) {
    return k.name == name;
  });
  if (kind == kKinds.end()) {
    std::vector<std::string_view> names;
    for (const DrafterKind& known : kKinds) {
      names.push_back(known.name);
    }
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("no drafter is called '{}', expected one of: {}", name, fmt::join(names, ", "))
    );
  }
  if (kind->needs_draft_model && inputs.draft_model == nullptr) {
    throw Error(
        ErrorKind::kInvalidArgument, fmt::format("the drafter '{}' needs a draft model", name)
    );
  }
  if (kind->needs_reference && inputs.references.empty()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("the drafter '{}' needs a text to propose from", name)
    );
  }
  return kind->make(target, std::move(inputs));
}

}  // namespace octet
