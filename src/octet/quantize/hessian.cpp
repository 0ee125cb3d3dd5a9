#include "octet/quantize/hessian.h"

#include <algorithm>
#include <span>

#include "octet/base/check.h"

namespace octet {
namespace {

/// Rows and columns of the Hessian that one product gives: they bound the float32 copy of them, and
/// what is computed below the diagonal, where no one reads.
constexpr int64_t kProductRows = 64;
constexpr int64_t kProductCols = 512;

}  // namespace

Hessian::Hessian(int64_t cols)
    : cols_(cols),
      batch_(static_cast<size_t>(cols * kBatchRows)),
      sums_(static_cast<size_t>(cols * cols)) {}

void Hessian::add(ConstRows x, Ops& ops) {
  OCTET_CHECK(x.cols == cols_);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* row = x.row(r);
    for (int64_t c = 0; c < cols_; ++c) {
      batch_[static_cast<size_t>(c * kBatchRows + pending_)] = row[c];
    }
    ++rows_;
    if (++pending_ == kBatchRows) {
      flush(ops);
    }
  }
}

void Hessian::add(Hessian other, Ops& ops) {
  OCTET_CHECK(other.cols_ == cols_);
  other.flush(ops);
  for (size_t i = 0; i < sums_.size(); ++i) {
    sums_[i] += other.sums_[i];
  }
  rows_ += other.rows_;
}

/// sums += X^T X of the batch, the upper triangle: X^T is both the weight, a strip of columns at a
/// time, and the input of a product with the rows down to the diagonal.
void Hessian::flush(Ops& ops) {
  if (pending_ == 0) {
    return;
  }
  for (int64_t c = 0; c < cols_; ++c) {
    float* column = batch_.data() + c * kBatchRows;
    std::fill(column + pending_, column + kBatchRows, 0.0F);
  }
  for (int64_t begin = 0; begin < cols_; begin += kProductCols) {
    add_strip(begin, std::min(kProductCols, cols_ - begin), ops);
  }
  pending_ = 0;
}

/// Columns [begin, begin + width) of the upper triangle.
void Hessian::add_strip(int64_t begin, int64_t width, Ops& ops) {
  LogicalTensor columns;
  columns.name = "calibration rows";
  columns.shape = {width, kBatchRows};
  columns.data = std::as_bytes(
      std::span(batch_.data() + begin * kBatchRows, static_cast<size_t>(width * kBatchRows))
  );
  const std::unique_ptr<Weight> weight = ops.prepare(Checkpoint(), columns);
  std::vector<float> products(static_cast<size_t>(kProductRows * width));
  const int64_t end = begin + width;
  for (int64_t first = 0; first < end; first += kProductRows) {
    const int64_t count = std::min(kProductRows, end - first);
    const ConstRows x(batch_.data() + first * kBatchRows, count, kBatchRows, kBatchRows);
    const Product product{weight.get(), {products.data(), count, width, width}};
    ops.matmul(x, {&product, 1});
    for (int64_t r = 0; r < count; ++r) {
      double* sums = sums_.data() + (first + r) * cols_;
      for (int64_t c = std::max(begin, first + r); c < end; ++c) {
        sums[c] += static_cast<double>(products[static_cast<size_t>(r * width + c - begin)]);
      }
    }
  }
}

std::vector<double> Hessian::take_mean(Ops& ops) {
  flush(ops);
  const double factor = rows_ == 0 ? 0.0 : 2.0 / static_cast<double>(rows_);
  for (int64_t r = 0; r < cols_; ++r) {
    for (int64_t c = r; c < cols_; ++c) {
      double& upper = sums_[static_cast<size_t>(r * cols_ + c)];
      upper *= factor;
      sums_[static_cast<size_t>(c * cols_ + r)] = upper;
    }
  }
  rows_ = 0;
  return std::move(sums_);
}

}  // namespace octet
