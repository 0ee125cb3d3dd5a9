// A draft model for ScriptedTarget that foresees it as far as its context is right: it reads the
// text's name from the last context feature, continues it with the anchor and its own guesses, and
// answers with the target's logits plus noise of a given width. With noise 0 and greedy text every
// draft is right, so a single wrong, missing or misplaced feature shows as lost acceptance. It
// refuses NaN features and positions out of order.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "octet/base/check.h"
#include "octet/models/draft_model.h"
#include "support/scripted_target.h"

namespace octet::test {

class ScriptedDraftCache : public DraftCache {
 public:
  int64_t length() const override { return begin_ + std::ssize(names); }
  int64_t valid_from() const override { return begin_; }
  int64_t bytes() const override { return std::ssize(names); }
  void restart(int64_t position) override {
    names.clear();
    begin_ = position;
  }
  void truncate(int64_t length) override {
    OCTET_CHECK(length >= begin_ && length <= this->length());
    names.resize(static_cast<size_t>(length - begin_));
  }

  void copy_prefix(const DraftCache& from, int64_t length) override {
    const auto& source = dynamic_cast<const ScriptedDraftCache&>(from);
    names = source.names;
    begin_ = source.begin_;
    truncate(length);
  }
  int64_t spare_positions() const override { return std::numeric_limits<int64_t>::max(); }

  std::vector<uint64_t> names;  // of the text up to each position

 private:
  int64_t begin_ = 0;
};

struct ForesightSettings {
  uint64_t target_seed = 0;
  double target_width = 4.0;
  double noise_width = 0.0;
  int block = 8;
  int64_t window = 0;
};

class ScriptedDraftModel : public DraftModel {
 public:
  ScriptedDraftModel(const TargetModel& target, ForesightSettings settings) : settings_(settings) {
    shape_.block = settings.block;
    shape_.window = settings.window;
    shape_.taps = {1, 4};
    shape_.vocabulary = target.shape().vocabulary;
  }

  int64_t injected_rows = 0;
  int64_t blind_drafts = 0;  // drafts without any context

  const DraftShape& shape() const override { return shape_; }
  ModelMemory memory() const override { return {}; }
  std::unique_ptr<DraftCache> new_cache(int64_t /*positions*/) const override {
    return std::make_unique<ScriptedDraftCache>();
  }

  void inject(DraftCache& cache, ConstRows features) override {
    auto& own = dynamic_cast<ScriptedDraftCache&>(cache);
    for (int64_t r = 0; r < features.rows; ++r) {
      const float* row = features.row(r);
      for (int64_t c = 0; c < features.cols; ++c) {
        OCTET_CHECK(!std::isnan(row[c]));
      }
      OCTET_CHECK(row[0] == static_cast<float>(own.length()));
      own.names.push_back(static_cast<uint64_t>(row[1]) | (static_cast<uint64_t>(row[2]) << 21U));
    }
    injected_rows += features.rows;
  }

  void draft(std::span<const DraftRequest> requests, Rows logits) override {
    int64_t next = 0;
    for (const DraftRequest& request : requests) {
      const auto& cache = dynamic_cast<const ScriptedDraftCache&>(*request.cache);
      const bool blind = cache.names.empty();
      blind_drafts += blind ? 1 : 0;
      uint64_t name = continued(blind ? text_name({}) : cache.names.back(), request.anchor);
      for (int j = 1; j < shape_.block; ++j) {
        const std::span<float> row(logits.row(next++), static_cast<size_t>(shape_.vocabulary));
        pseudo_random_logits(name, settings_.target_seed, settings_.target_width, row);
        std::vector<float> noise(row.size());
        pseudo_random_logits(name, ~settings_.target_seed, settings_.noise_width, noise);
        size_t best = 0;
        for (size_t t = 0; t < row.size(); ++t) {
          row[t] += noise[t];
          best = row[t] > row[best] ? t : best;
        }
        name = continued(name, static_cast<TokenId>(best));
      }
    }
  }

 private:
  static uint64_t continued(uint64_t name, TokenId token) {
    return mix(name, static_cast<uint64_t>(token)) & ((uint64_t{1} << 42U) - 1);
  }

  ForesightSettings settings_;
  DraftShape shape_;
};

}  // namespace octet::test
