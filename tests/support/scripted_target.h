// A target model that is a function: the logits of a row depend on the whole text before it, by a
// rule that a test gives, or pseudo-randomly by default. It keeps books instead of keys and values,
// so it notices misuse: rows that do not continue the cache, rows beyond the capacity. Its tap
// features name the text they were computed under, so a drafter double can tell right ones from
// wrong ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "octet/base/check.h"
#include "octet/models/target_model.h"

namespace octet::test {

inline uint64_t mix(uint64_t state, uint64_t value) {
  uint64_t z = state ^ (value + 0x9E3779B97F4A7C15ULL + (state << 6U) + (state >> 2U));
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

/// 42 bits that name a text, as two numbers that floats hold exactly.
inline uint64_t text_name(std::span<const TokenId> text) {
  uint64_t state = 0x5EED;
  for (const TokenId token : text) {
    state = mix(state, static_cast<uint64_t>(token)) & ((uint64_t{1} << 42U) - 1);
  }
  return state;
}

/// Logits of the token after a text of this name: a few units wide, on a coarse grid so that ties
/// are common.
inline void pseudo_random_logits(
    uint64_t name, uint64_t seed, double width, std::span<float> logits
) {
  for (size_t t = 0; t < logits.size(); ++t) {
    const uint64_t bits = mix(mix(name, seed), t);
    const double unit = static_cast<double>(bits >> 11U) * 0x1p-53;
    logits[t] = static_cast<float>(std::round(4.0 * width * (unit * unit * 2.0 - 1.0)) / 4.0);
  }
}

/// prefix: all tokens up to and including the row's own.
using LogitRule = std::function<void(std::span<const TokenId> prefix, std::span<float> logits)>;

inline LogitRule pseudo_random_rule(uint64_t seed, double width) {
  return [=](std::span<const TokenId> prefix, std::span<float> logits) {
    pseudo_random_logits(text_name(prefix), seed, width, logits);
  };
}

class ScriptedCache : public SequenceCache {
 public:
  explicit ScriptedCache(int64_t capacity) : capacity_(capacity) {}
  int64_t length() const override { return std::ssize(tokens); }
  int64_t capacity() const override { return capacity_; }
  int64_t bytes() const override { return length(); }
  void truncate(int64_t length) override {
    OCTET_CHECK(length >= 0 && length <= this->length());
    tokens.resize(static_cast<size_t>(length));
  }

  void copy_prefix(const SequenceCache& from, int64_t length) override {
    tokens = dynamic_cast<const ScriptedCache&>(from).tokens;
    truncate(length);
  }
  int64_t bytes_at(int64_t positions) const override { return positions; }

  std::vector<TokenId> tokens;

 private:
  int64_t capacity_;
};

class ScriptedTarget : public TargetModel {
 public:
  static constexpr int64_t kHidden = 4;
  static constexpr int64_t kLayers = 6;

  ScriptedTarget(int64_t vocabulary, LogitRule rule, int64_t context_length = 1 << 20)
      : shape_{vocabulary, kHidden, kLayers, context_length}, rule_(std::move(rule)) {}

  /// Rows whose text is not the beginning of one of these get NaN features: they can only be
  /// rejected ones.
  std::vector<std::vector<TokenId>> poison_beside;
  int64_t rows_limit = 16;
  int64_t rows_computed = 0;
  int64_t forwards = 0;
  int64_t feature_rows_computed = 0;
  int64_t weights_bytes = 0;

  const TargetShape& shape() const override { return shape_; }
  int64_t max_rows() const override { return rows_limit; }
  ModelMemory memory() const override { return {.weights_bytes = weights_bytes}; }
  std::unique_ptr<SequenceCache> new_cache(int64_t positions, KvType /*type*/) const override {
    return std::make_unique<ScriptedCache>(positions);
  }

  void forward(std::span<const SequenceRows> batch, std::span<const int> taps, ForwardRows& out)
      override {
    ++forwards;
    const int64_t feature_cols = std::ssize(taps) * kHidden;
    int64_t logits_rows = 0;
    int64_t feature_rows = 0;
    for (const SequenceRows& rows : batch) {
      logits_rows += rows.logits_rows;
      feature_rows += rows.feature_rows;
    }
    out.logits_buffer.assign(static_cast<size_t>(logits_rows * shape_.vocabulary), 0.0F);
    out.features_buffer.assign(static_cast<size_t>(feature_rows * feature_cols), 0.0F);
    out.logits = {out.logits_buffer.data(), logits_rows, shape_.vocabulary, shape_.vocabulary};
    out.features = {out.features_buffer.data(), feature_rows, feature_cols, feature_cols};
    int64_t next_logits = 0;
    int64_t next_features = 0;
    for (const SequenceRows& rows : batch) {
      auto& cache = dynamic_cast<ScriptedCache&>(*rows.cache);
      const auto count = std::ssize(rows.tokens);
      OCTET_CHECK(count >= 1 && count <= rows_limit);
      OCTET_CHECK(cache.length() + count <= cache.capacity());
      for (int64_t i = 0; i < count; ++i) {
        const TokenId token = rows.tokens[static_cast<size_t>(i)];
        OCTET_CHECK(token >= 0 && token < shape_.vocabulary);
        cache.tokens.push_back(token);
        if (i >= count - rows.logits_rows) {
          float* row = out.logits.row(next_logits++);
          rule_(cache.tokens, {row, static_cast<size_t>(shape_.vocabulary)});
        }
        if (i >= count - rows.feature_rows) {
          write_features(cache.tokens, std::ssize(taps), out.features.row(next_features++));
        }
      }
      rows_computed += count;
    }
    feature_rows_computed += feature_rows;
  }

  void embed(std::span<const TokenId> /*ids*/, float /*scale*/, Rows /*out*/) override {}
  void head(ConstRows /*hidden*/, Rows /*logits*/) override {}
  float final_softcap() const override { return 0.0F; }

 private:
  void write_features(std::span<const TokenId> text, int64_t taps, float* row) const {
    const uint64_t name = text_name(text);
    const bool known =
        poison_beside.empty() || std::ranges::any_of(poison_beside, [&](const auto& whole) {
          return text.size() <= whole.size() &&
                 std::ranges::equal(text, std::span(whole).first(text.size()));
        });
    for (int64_t tap = 0; tap < taps; ++tap) {
      float* part = row + tap * kHidden;
      part[0] = static_cast<float>(text.size() - 1);
      part[1] = static_cast<float>(name & 0x1FFFFFU);
      part[2] = static_cast<float>(name >> 21U);
      part[3] = static_cast<float>(tap);
      if (!known) {
        std::fill(part, part + kHidden, std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  TargetShape shape_;
  LogitRule rule_;
};

}  // namespace octet::test
