// Drafters that know a text beforehand: for proofs (`octet verify`), tests and the bounds of what
// drafting can gain.
//   oracle  proposes the text           every draft is accepted
//   liar    never proposes the text     no draft is accepted
//   half    the first rows right, then wrong
// They hold when the target really writes the reference; where it does not, they only cost time, as
// any drafter.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "octet/speculation/drafter.h"

namespace octet {

enum class Script : uint8_t { kOracle, kLiar, kHalf };

class ScriptedDrafter : public Drafter {
 public:
  /// half: right in the first `right_rows` of a block.
  ScriptedDrafter(Script script, int64_t vocabulary, int max_drafts = 7, int right_rows = 3);

  /// A whole text, prompt included. A sequence follows the reference that it shares the longest
  /// prefix with.
  void add_reference(std::vector<TokenId> text);

  std::string_view name() const override;
  int max_drafts() const override { return max_drafts_; }
  std::unique_ptr<DraftState> new_state(int64_t positions) const override;
  void propose(std::span<DraftTask> tasks) override;
  void truncate(DraftState& state, int64_t length) override;

 private:
  Script script_;
  int64_t vocabulary_;
  int max_drafts_;
  int right_rows_;
  std::vector<std::vector<TokenId>> references_;
};

}  // namespace octet
