#include "octet/speculation/drafters/dflash_drafter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "octet/base/check.h"
#include "octet/speculation/pick_drafts.h"

namespace octet {
namespace {

// Rows kept raw before they are injected in one go: enough to fill a matrix product, little to hold
// (a raw row of the full-size pair has 50 KiB).
constexpr int64_t kMaxPendingRows = 64;

struct DFlashState : DraftState {
  std::unique_ptr<DraftCache> cache;
  std::vector<float>
      pending;  // features of positions [pending_begin, pending_end), not injected yet
  int64_t pending_begin = 0;
  int64_t pending_end = 0;

  int64_t bytes() const override {
    return cache->bytes() + static_cast<int64_t>(pending.capacity() * sizeof(float));
  }

  void drop_pending() {
    pending.clear();
    pending_begin = 0;
    pending_end = 0;
  }

  /// The first position of the unbroken stretch that ends where observation ended.
  int64_t first() const {
    const bool joined = pending_begin == pending_end || pending_begin == cache->length();
    return joined ? cache->valid_from() : pending_begin;
  }
  int64_t end() const { return pending_begin == pending_end ? cache->length() : pending_end; }

  void append(int64_t position, ConstRows features) {
    if (pending_begin == pending_end) {
      pending_begin = position;
    }
    for (int64_t r = 0; r < features.rows; ++r) {
      pending.insert(pending.end(), features.row(r), features.row(r) + features.cols);
    }
    pending_end = position + features.rows;
  }
};

DFlashState& state_of(DraftState* state) {
  return *static_cast<DFlashState*>(state);
}

const DFlashState& state_of(const DraftState& state) {
  return static_cast<const DFlashState&>(state);
}

void inject_at(DraftModel& model, DraftCache& cache, int64_t position, ConstRows features) {
  if (cache.length() != position) {
    cache.restart(position);  // what lies between was not observed: masked, never read
  }
  model.inject(cache, features);
}

void inject_pending(DraftModel& model, DFlashState& state) {
  const int64_t rows = state.pending_end - state.pending_begin;
  if (rows > 0) {
    const int64_t cols = std::ssize(state.pending) / rows;
    inject_at(model, *state.cache, state.pending_begin, {state.pending.data(), rows, cols, cols});
    state.drop_pending();
  }
}

}  // namespace

DFlashDrafter::DFlashDrafter(std::unique_ptr<DraftModel> model, float softcap)
    : model_(std::move(model)), softcap_(model_->shape().final_softcap.value_or(softcap)) {}

int DFlashDrafter::max_drafts() const {
  return std::min(model_->shape().block - 1, kMaxDrafts);
}

std::span<const int> DFlashDrafter::taps() const {
  return model_->shape().taps;
}

int64_t DFlashDrafter::feature_window() const {
  const int64_t window = model_->shape().window;
  return window > 0 ? window - 1 : std::numeric_limits<int64_t>::max();
}

std::unique_ptr<DraftState> DFlashDrafter::new_state(int64_t positions) const {
  auto state = std::make_unique<DFlashState>();
  state->cache = model_->new_cache(positions);
  return state;
}

void DFlashDrafter::propose(std::span<DraftTask> tasks) {
  const int64_t drafts = model_->shape().block - 1;
  const int64_t vocabulary = model_->shape().vocabulary;
  requests_.clear();
  for (const DraftTask& task : tasks) {
    DFlashState& state = state_of(task.state);
    inject_pending(*model_, state);
    const int64_t position = std::ssize(task.tokens) - 1;
    if (state.cache->length() != position) {
      state.cache->restart(position);
    }
    requests_.push_back({state.cache.get(), task.tokens.back()});
  }
  const int64_t rows = drafts * std::ssize(tasks);
  logits_.resize(static_cast<size_t>(rows * vocabulary));
  const Rows logits = {logits_.data(), rows, vocabulary, vocabulary};
  model_->draft(requests_, logits);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Rows own = logits.slice(static_cast<int64_t>(i) * drafts, drafts);
    pick_drafts(tasks[i], own, softcap_, TokenColumns(model_->shape().tokens));
  }
}

int64_t DFlashDrafter::scratch_bytes() const {
  return static_cast<int64_t>(logits_.capacity() * sizeof(float));
}

void DFlashDrafter::observe(DraftState& state, int64_t position, ConstRows features) {
  if (features.rows == 0) {
    return;
  }
  DFlashState& own = state_of(&state);
  if (position > own.pending_end) {
    own.drop_pending();  // behind a gap nothing before it is seen
  }
  const bool gap = own.pending_begin != own.pending_end && position != own.pending_end;
  const int64_t waiting = own.pending_end - own.pending_begin;
  if (gap || waiting + features.rows > kMaxPendingRows) {
    inject_pending(*model_, own);
  }
  if (features.rows > kMaxPendingRows) {
    inject_at(*model_, *own.cache, position, features);
  } else {
    own.append(position, features);
  }
}

void DFlashDrafter::truncate(DraftState& state, int64_t length) {
  DFlashState& own = state_of(&state);
  if (own.pending_begin != own.pending_end) {
    if (length >= own.pending_end) {
      return;
    }
    const int64_t rows = own.pending_end - own.pending_begin;
    const int64_t cols = std::ssize(own.pending) / rows;
    if (length > own.pending_begin) {
      own.pending.resize(static_cast<size_t>((length - own.pending_begin) * cols));
      own.pending_end = length;
      return;
    }
    own.drop_pending();
  }
  if (length <= own.cache->valid_from()) {
    own.cache->restart(length);
  } else if (length < own.cache->length()) {
    own.cache->truncate(length);
  }
}

bool DFlashDrafter::can_truncate(const DraftState& state, int64_t length) const {
  const DFlashState& own = state_of(state);
  const int64_t window_begin = std::max<int64_t>(0, length - feature_window());
  return length == 0 || (length <= own.end() && own.first() <= window_begin);
}

int64_t DFlashDrafter::spare_positions(const DraftState& state) const {
  return state_of(state).cache->spare_positions();
}

void DFlashDrafter::copy_prefix(DraftState& to, const DraftState& from, int64_t length) {
  const DFlashState& source = state_of(from);
  DFlashState& own = state_of(&to);
  own.cache->copy_prefix(*source.cache, source.cache->length());
  own.pending = source.pending;
  own.pending_begin = source.pending_begin;
  own.pending_end = source.pending_end;
  truncate(to, length);
}

}  // namespace octet
