// The head that drafts are read from when it is not the pair's whole one: some rows of it (a
// shortlist of the vocabulary), in a smaller weight type, or both. It changes which drafts are
// proposed, never the text, because the target judges them with its own head. Not for choosing the
// tokens of a shortlist (engine/shortlist.h) nor for its file (formats/draft_head_file.h).
// Invariant: tokens ascend, and row i of the weight scores tokens[i].
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "octet/base/thread_pool.h"
#include "octet/base/token.h"
#include "octet/kernels/ops.h"
#include "octet/tensor/checkpoint.h"

namespace octet {

// What a draft head's checkpoint holds.
inline constexpr std::string_view kDraftHeadArchitecture = "octet-draft-head";
inline constexpr std::string_view kDraftHeadVocabularyKey = "draft_head.vocabulary";
/// Ascending token ids, one a row; without it row i is token i.
inline constexpr std::string_view kDraftHeadTokensKey = "draft_head.tokens";
inline constexpr std::string_view kDraftHeadTensor = "draft_head.weight";  // [rows, hidden]

struct StoredDraftHead {
  std::unique_ptr<Weight> weight;  // [rows, hidden]
  std::vector<TokenId> tokens;     // one a row; empty: all of the vocabulary
};

/// Prepares a stored draft head. `whole` is the head of the pair, [vocabulary, hidden]: sizes must
/// agree, and rows compared by sample must resemble it. Throws Error(kMismatch, kMalformed) in one
/// sentence otherwise, naming the file.
StoredDraftHead load_draft_head(const Checkpoint& stored, const LogicalTensor& whole, Ops& ops);

/// The rows of `whole` that score `tokens` (empty: all), encoded as `dtype`; copied where that is
/// the head's own type.
std::vector<std::byte> encode_draft_head(
    const LogicalTensor& whole, std::span<const TokenId> tokens, DType dtype, ThreadPool& pool
);

}  // namespace octet
