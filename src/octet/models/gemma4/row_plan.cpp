#include "octet/models/gemma4/row_plan.h"

#include <algorithm>
#include <array>

namespace octet {
namespace {

/// Splits a sequence's rows where their depth changes. Depth rises towards the end of the sequence,
/// because logits and features are asked for the last rows.
void add_groups(
    const SequenceRows& sequence,
    size_t index,
    const DepthRule& rule,
    std::vector<RowGroup>& groups,
    std::vector<int64_t>& first_tokens
) {
  const auto count = static_cast<int64_t>(sequence.tokens.size());
  const auto depth_of = [&](int64_t token) {
    int64_t depth = rule.last_kv_layer;
    if (token >= count - sequence.feature_rows) {
      depth = std::max(depth, rule.feature_layers);
    }
    return token >= count - sequence.logits_rows ? rule.layers : depth;
  };
  for (int64_t begin = 0; begin < count;) {
    int64_t end = begin + 1;
    while (end < count && depth_of(end) == depth_of(begin)) {
      ++end;
    }
    groups.push_back({index, 0, end - begin, depth_of(begin)});
    first_tokens.push_back(begin);
    begin = end;
  }
}

}  // namespace

int64_t RowPlan::rows_through(int64_t l) const {
  int64_t count = 0;
  for (const RowGroup& group : groups) {
    if (group.depth <= l) {
      break;
    }
    count += group.rows;
  }
  return count;
}

RowPlan plan_rows(std::span<const SequenceRows> batch, const DepthRule& rule) {
  RowPlan plan;
  std::vector<RowGroup> groups;
  std::vector<int64_t> first_tokens;
  for (size_t s = 0; s < batch.size(); ++s) {
    add_groups(batch[s], s, rule, groups, first_tokens);
  }
  std::vector<size_t> order(groups.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return groups[a].depth > groups[b].depth;
  });
  std::vector<std::vector<int64_t>> row_of(batch.size());  // token index -> row
  for (size_t s = 0; s < batch.size(); ++s) {
    row_of[s].resize(batch[s].tokens.size());
  }
  for (const size_t i : order) {
    RowGroup group = groups[i];
    group.first_row = plan.rows();
    plan.groups.push_back(group);
    const SequenceRows& sequence = batch[group.sequence];
    for (int64_t token = first_tokens[i]; token < first_tokens[i] + group.rows; ++token) {
      const int64_t position = sequence.cache->length() + token;
      row_of[group.sequence][static_cast<size_t>(token)] = plan.rows();
      plan.tokens.push_back(sequence.tokens[static_cast<size_t>(token)]);
      plan.positions.push_back(position);
      plan.full_keys.push_back({0, position + 1});
      plan.sliding_keys.push_back({std::max<int64_t>(0, position + 1 - rule.window), position + 1});
    }
  }
  for (size_t s = 0; s < batch.size(); ++s) {
    const std::vector<int64_t>& rows = row_of[s];
    plan.logits_from.insert(plan.logits_from.end(), rows.end() - batch[s].logits_rows, rows.end());
    plan.features_from.insert(
        plan.features_from.end(), rows.end() - batch[s].feature_rows, rows.end()
    );
  }
  return plan;
}

}  // namespace octet
