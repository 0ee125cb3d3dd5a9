// The drafters that a user can ask for by name, in one place: `octet run --drafter NAME`, help
// texts and checks. To add one: implement Drafter, add a line here (docs/adding/drafter.md).
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "octet/base/token.h"
#include "octet/models/draft_model.h"
#include "octet/models/target_model.h"
#include "octet/speculation/drafter.h"

namespace octet {

/// What a drafter may need; each takes what it wants.
struct DrafterInputs {
  std::unique_ptr<DraftModel> draft_model;       // dflash
  std::vector<std::vector<TokenId>> references;  // oracle, liar, half: whole texts
  int max_drafts = 7;                            // likewise: of a step, at most kMaxDrafts
};

struct DrafterKind {
  std::string_view name;
  std::string_view summary;
  bool needs_draft_model = false;
  bool needs_reference = false;
  std::unique_ptr<Drafter> (*make)(const TargetModel& target, DrafterInputs inputs) = nullptr;
};

std::span<const DrafterKind> drafter_kinds();

/// Throws Error(kInvalidArgument) listing the names, or saying which input is missing.
std::unique_ptr<Drafter> new_drafter(
    std::string_view name, const TargetModel& target, DrafterInputs inputs
);

}  // namespace octet
