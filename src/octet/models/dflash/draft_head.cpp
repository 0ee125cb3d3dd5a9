#include "octet/models/dflash/draft_head.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/tensor/dtype.h"
#include "octet/tensor/encode.h"

namespace octet {
namespace {

constexpr int64_t kSampledRows = 16;
// Cosine between a row and its copy: 4 bits a weight give more than 0.99, another model's row about
// 0.
constexpr double kLeastResemblance = 0.9;
constexpr int64_t kRowsAtOnce = 64;

[[noreturn]] void refuse(ErrorKind kind, const Checkpoint& stored, std::string_view what) {
  throw Error(
      kind,
      fmt::format(
          "{}: the draft head does not fit the pair: {}; make it anew with `octet draft-head`",
          stored.path,
          what
      )
  );
}

std::vector<TokenId> read_tokens(const Checkpoint& stored, int64_t rows, int64_t vocabulary) {
  const auto ids = stored.metadata.find_integers(kDraftHeadTokensKey);
  const int64_t listed = ids ? std::ssize(*ids) : vocabulary;
  if (listed != rows) {
    refuse(
        ErrorKind::kMalformed, stored, fmt::format("it has {} rows for {} tokens", rows, listed)
    );
  }
  std::vector<TokenId> tokens;
  if (ids) {
    for (const int64_t id : *ids) {
      const int64_t least = tokens.empty() ? 0 : int64_t{tokens.back()} + 1;
      if (id < least || id >= vocabulary) {
        refuse(
            ErrorKind::kMalformed,
            stored,
            fmt::format(
                "its token {} is {}, expected one in [{}, {})", tokens.size(), id, least, vocabulary
            )
        );
      }
      tokens.push_back(static_cast<TokenId>(id));
    }
  }
  return tokens;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0.0;
  double a_squares = 0.0;
  double b_squares = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    a_squares += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    b_squares += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  if (a_squares == 0.0 || b_squares == 0.0) {
    return a_squares == b_squares ? 1.0 : 0.0;  // unused tokens have rows of zeros
  }
  return product / std::sqrt(a_squares * b_squares);
}

/// A head of another model of the same sizes would cost nearly all acceptance, unnoticed.
void check_resemblance(
    const Checkpoint& stored, std::span<const TokenId> tokens, const LogicalTensor& whole
) {
  const LogicalTensor& copy = stored.at(kDraftHeadTensor);
  std::vector<float> row(static_cast<size_t>(whole.cols()));
  std::vector<float> copied(row.size());
  for (int64_t i = 0; i < std::min(kSampledRows, copy.rows()); ++i) {
    const int64_t at = i * copy.rows() / kSampledRows % copy.rows();
    const int64_t token = tokens.empty() ? at : tokens[static_cast<size_t>(at)];
    decode_rows(copy, at, 1, copied.data());
    decode_rows(whole, token, 1, row.data());
    if (!(cosine(row, copied) >= kLeastResemblance)) {
      refuse(
          ErrorKind::kMismatch,
          stored,
          fmt::format("its row of token {} is not that of the pair's head", token)
      );
    }
  }
}

}  // namespace

StoredDraftHead load_draft_head(const Checkpoint& stored, const LogicalTensor& whole, Ops& ops) {
  const std::string* architecture = stored.metadata.find_string("general.architecture");
  if (architecture == nullptr || *architecture != kDraftHeadArchitecture) {
    refuse(ErrorKind::kMismatch, stored, "it is not a draft head");
  }
  const int64_t vocabulary = stored.metadata.integer(kDraftHeadVocabularyKey);
  if (vocabulary != whole.rows()) {
    refuse(
        ErrorKind::kMismatch,
        stored,
        fmt::format("its vocabulary has {} tokens, expected {}", vocabulary, whole.rows())
    );
  }
  const LogicalTensor& tensor = stored.at(kDraftHeadTensor);
  if (tensor.shape.size() != 2 || tensor.cols() != whole.cols() || tensor.rows() == 0) {
    refuse(
        ErrorKind::kMismatch,
        stored,
        fmt::format("its rows have {} values, expected {}", tensor.cols(), whole.cols())
    );
  }
  StoredDraftHead head;
  head.tokens = read_tokens(stored, tensor.rows(), vocabulary);
  check_resemblance(stored, head.tokens, whole);
  head.weight = ops.prepare(stored, tensor);
  return head;
}

std::vector<std::byte> encode_draft_head(
    const LogicalTensor& whole, std::span<const TokenId> tokens, DType dtype, ThreadPool& pool
) {
  const int64_t rows = tokens.empty() ? whole.rows() : std::ssize(tokens);
  const auto row_size = static_cast<size_t>(row_bytes(dtype, whole.cols()));
  std::vector<std::byte> result(static_cast<size_t>(rows) * row_size);
  // Parts of NVFP4 (ModelOpt) rows lie apart, so those are decoded like a change of type.
  const bool copied = dtype == whole.dtype && whole.block_scales.empty() && whole.scale == 1.0F;
  pool.for_ranges(rows, kRowsAtOnce, [&](int64_t begin, int64_t end) {
    std::vector<float> values(static_cast<size_t>(whole.cols()));
    for (int64_t r = begin; r < end; ++r) {
      const int64_t token = tokens.empty() ? r : tokens[static_cast<size_t>(r)];
      std::byte* out = result.data() + static_cast<size_t>(r) * row_size;
      if (copied) {
        std::memcpy(out, whole.data.data() + static_cast<size_t>(token) * row_size, row_size);
      } else {
        decode_rows(whole, token, 1, values.data());
        encode_rows(dtype, values.data(), 1, whole.cols(), nullptr, out);
      }
    }
  });
  return result;
}

}  // namespace octet
