// A source of drafts for any number of sequences. It sees published text and the target's features
// of accepted rows, nothing else: rejected rows never reach it, and it never decides what is
// emitted. Per sequence it keeps a DraftState; invariant: features are observed gap-free in
// position order, except where a caller says that earlier ones are not coming (the first observe
// after a reset may start anywhere).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "octet/base/token.h"
#include "octet/sampling/penalty_window.h"
#include "octet/sampling/sampler.h"
#include "octet/speculation/proposal.h"
#include "octet/tensor/rows.h"

namespace octet {

class DraftState {
 public:
  virtual ~DraftState() = default;
  virtual int64_t bytes() const { return 0; }
};

/// One sequence that wants drafts.
struct DraftTask {
  DraftState* state = nullptr;
  std::span<const TokenId> tokens;  // the whole text; the last one is the anchor
  int count = 0;                    // most drafts wanted, 1 .. max_drafts()
  const Sampler* sampler = nullptr;
  const PenaltyWindow* penalties = nullptr;
  const DraftChoices* choices = nullptr;  // for temperature > 0
  VerifyRule rule = VerifyRule::kCompare;
  Proposal* out = nullptr;        // empty on entry; at most `count` tokens on return
  bool wants_confidence = false;  // fill out->confidence where that is possible
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  virtual std::string_view name() const = 0;
  virtual int max_drafts() const = 0;  // 0: never drafts

  /// Zero-based target layers whose features observe() wants; empty: none.
  virtual std::span<const int> taps() const { return {}; }
  /// Only so many positions before an anchor matter; earlier features need not be computed.
  virtual int64_t feature_window() const { return 0; }

  virtual std::unique_ptr<DraftState> new_state(int64_t positions) const = 0;
  virtual void propose(std::span<DraftTask> tasks) = 0;

  /// Working memory that propose() keeps, beyond the model's own.
  virtual int64_t scratch_bytes() const { return 0; }

  /// Features [n, taps * hidden] of committed rows at position .. position + n.
  virtual void observe(DraftState& state, int64_t position, ConstRows features);
  /// The text was cut to `length` rows (0: a new text).
  virtual void truncate(DraftState& state, int64_t length);
  /// Whether a draft right after truncate(length) would find everything that it can see. Where not,
  /// truncation is allowed and costs acceptance.
  virtual bool can_truncate(const DraftState& state, int64_t length) const;
  /// How many rows may be observed after `length` before can_truncate(length) turns false.
  virtual int64_t spare_positions(const DraftState& state) const;
  /// `to`, a state of this drafter, becomes a copy of `from` cut to `length` rows.
  virtual void copy_prefix(DraftState& to, const DraftState& from, int64_t length);
};

}  // namespace octet
