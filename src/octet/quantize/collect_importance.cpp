#include "octet/quantize/collect_importance.h"

#include "octet/models/run_text.h"

namespace octet {
namespace {

constexpr std::string_view kLayerPrefix = "blk.";

}  // namespace

void ImportanceOps::matmul(ConstRows x, std::span<const Product> products) {
  for (const Product& product : products) {
    const std::string& name = product.weight->name;
    if (x.rows == 0 || !name.starts_with(kLayerPrefix)) {
      continue;
    }
    Sums& sums = sums_[name];
    sums.squares.resize(static_cast<size_t>(x.cols));
    sums.rows += x.rows;
    for (int64_t r = 0; r < x.rows; ++r) {
      const float* row = x.row(r);
      for (int64_t c = 0; c < x.cols; ++c) {
        sums.squares[static_cast<size_t>(c)] += static_cast<double>(row[c]) * row[c];
      }
    }
  }
  wrapped().matmul(x, products);
}

std::map<std::string, ImportanceEntry, std::less<>> ImportanceOps::entries() const {
  std::map<std::string, ImportanceEntry, std::less<>> entries;
  for (const auto& [name, sums] : sums_) {
    ImportanceEntry& entry = entries[name];
    entry.count = sums.rows;
    entry.sum_squares.assign(sums.squares.begin(), sums.squares.end());
  }
  return entries;
}

ImportanceMatrix collect_importance(
    TargetModel& target,
    const ImportanceOps& ops,
    std::span<const std::vector<TokenId>> texts,
    TokenId bos,
    const ChunkOptions& options,
    const OnChunk& on_chunk
) {
  const std::vector<std::vector<TokenId>> chunks = cut_chunks(texts, bos, options, target.shape());
  const int last_layer = static_cast<int>(target.shape().layers) - 1;
  for (size_t c = 0; c < chunks.size(); ++c) {
    run_text(target, chunks[c], {.taps = {&last_layer, 1}}, [](const ForwardRows&) {});
    if (on_chunk) {
      on_chunk(static_cast<int64_t>(c) + 1, std::ssize(chunks));
    }
  }
  ImportanceMatrix matrix;
  matrix.entries = ops.entries();
  matrix.chunk_count = std::ssize(chunks);
  matrix.chunk_size = options.chunk_tokens;
  return matrix;
}

}  // namespace octet
