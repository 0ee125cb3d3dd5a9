// Runs models over token sequences for tests: in chunks, with taps, every row's results kept apart
// so that runs can be compared bit by bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "octet/kernels/ops.h"
#include "octet/models/load_model.h"
#include "octet/tensor/checkpoint.h"

namespace octet::test {

using FloatRows = std::vector<std::vector<float>>;

inline std::unique_ptr<Ops> test_ops(int threads = 1) {
  CpuOptions options;
  options.threads = threads;
  return make_cpu_ops(options);
}

inline FloatRows copy_of(ConstRows rows) {
  FloatRows out;
  for (int64_t r = 0; r < rows.rows; ++r) {
    out.emplace_back(rows.row(r), rows.row(r) + rows.cols);
  }
  return out;
}

inline void append(FloatRows& to, ConstRows rows) {
  for (std::vector<float>& row : copy_of(rows)) {
    to.push_back(std::move(row));
  }
}

/// "" when both are the same bits, else where they first differ.
inline std::string first_difference(const FloatRows& a, const FloatRows& b) {
  if (a.size() != b.size()) {
    return fmt::format("{} rows against {}", a.size(), b.size());
  }
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r].size() != b[r].size()) {
      return fmt::format("row {}: {} columns against {}", r, a[r].size(), b[r].size());
    }
    for (size_t c = 0; c < a[r].size(); ++c) {
      if (std::memcmp(&a[r][c], &b[r][c], sizeof(float)) != 0) {
        return fmt::format("row {} column {}: {} against {}", r, c, a[r][c], b[r][c]);
      }
    }
  }
  return "";
}

/// "" when every value is finite: equal NaNs must not pass for equal results.
inline std::string first_not_finite(const FloatRows& a) {
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t c = 0; c < a[r].size(); ++c) {
      if (!std::isfinite(a[r][c])) {
        return fmt::format("row {} column {} is {}", r, c, a[r][c]);
      }
    }
  }
  return "";
}

struct TargetRun {
  FloatRows logits;    // one a token
  FloatRows features;  // one a token
};

/// Forwards tokens[begin, end) as one chunk with results for every row, appended to `run`.
inline void forward_all(
    TargetModel& model,
    SequenceCache& cache,
    std::span<const TokenId> tokens,
    std::span<const int> taps,
    TargetRun& run
) {
  const auto count = static_cast<int64_t>(tokens.size());
  const SequenceRows rows{&cache, tokens, count, taps.empty() ? 0 : count};
  ForwardRows out;
  model.forward({&rows, 1}, taps, out);
  append(run.logits, out.logits);
  append(run.features, out.features);
}

/// The whole sequence from an empty cache, in chunks of `chunk` rows.
inline TargetRun run_target(
    TargetModel& model,
    const std::vector<TokenId>& tokens,
    int64_t chunk,
    const std::vector<int>& taps,
    KvType type
) {
  const auto count = static_cast<int64_t>(tokens.size());
  const auto cache = model.new_cache(count, type);
  TargetRun run;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const auto rows = static_cast<size_t>(std::min(chunk, count - begin));
    const auto part = std::span(tokens).subspan(static_cast<size_t>(begin), rows);
    forward_all(model, *cache, part, taps, run);
  }
  return run;
}

/// Rows as one matrix; `storage` holds it.
inline ConstRows as_rows(const FloatRows& rows, std::vector<float>& storage) {
  storage.clear();
  for (const std::vector<float>& row : rows) {
    storage.insert(storage.end(), row.begin(), row.end());
  }
  const auto cols = rows.empty() ? 0 : static_cast<int64_t>(rows[0].size());
  return {storage.data(), static_cast<int64_t>(rows.size()), cols, cols};
}

inline void inject(DraftModel& model, DraftCache& cache, const FloatRows& features) {
  if (features.empty()) {
    return;
  }
  std::vector<float> storage;
  model.inject(cache, as_rows(features, storage));
}

inline FloatRows draft(DraftModel& model, std::span<const DraftRequest> requests) {
  const int64_t rows = static_cast<int64_t>(requests.size()) * (model.shape().block - 1);
  const int64_t cols = model.shape().vocabulary;
  std::vector<float> storage(static_cast<size_t>(rows * cols));
  const Rows logits{storage.data(), rows, cols, cols};
  model.draft(requests, logits);
  return copy_of(logits);
}

inline FloatRows draft(DraftModel& model, DraftCache& cache, TokenId anchor) {
  const DraftRequest request{&cache, anchor};
  return draft(model, {&request, 1});
}

}  // namespace octet::test
