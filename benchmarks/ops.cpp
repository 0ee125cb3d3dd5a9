// octet-bench-ops: what single kernels cost, for work on them. Products of every weight type and
// several row counts, with weights that stay in the caches ("hot") and weights that stream from
// memory ("memory"), and the elementwise operations at the shapes of the full model. Not for
// figures of the whole: that is `octet bench cycle`. OCTET_ISA chooses the instruction set,
// OCTET_BENCH_THREADS the threads (default: all usable CPUs); the rest are google benchmark's own
// flags, e.g. --benchmark_filter='Q4_K/8/memory'.
#include "octet/kernels/ops.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "octet/tensor/encode.h"

namespace octet {
namespace {

constexpr int64_t kHidden = 2560;  // of the full model, as all shapes below
constexpr int64_t kFeedForward = 10240;
constexpr int64_t kStripRows = 32;
constexpr int64_t kHotBytes = int64_t{512} << 10;     // fits the second-level caches of two cores
constexpr int64_t kMemoryBytes = int64_t{256} << 20;  // no cache holds it

std::vector<float> random_values(int64_t count) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<float> values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

/// Encoded weights [rows, kHidden]: one random strip over and over, because encoding is slow and
/// time does not depend on the values.
struct Matrix {
  std::vector<std::byte> data;
  std::vector<std::byte> block_scales;
  LogicalTensor tensor;

  Matrix(DType dtype, int64_t rows) {
    const std::vector<float> values = random_values(kStripRows * kHidden);
    std::vector<std::byte> strip;
    std::vector<std::byte> strip_scales;
    if (dtype == DType::kNVFP4ModelOpt) {
      NVFP4ModelOptData encoded = encode_nvfp4_modelopt(values.data(), kStripRows, kHidden);
      strip = std::move(encoded.codes);
      strip_scales = std::move(encoded.block_scales);
      tensor.scale = encoded.scale;
    } else {
      strip.resize(static_cast<size_t>(kStripRows * row_bytes(dtype, kHidden)));
      encode_rows(dtype, values.data(), kStripRows, kHidden, nullptr, strip.data());
    }
    for (int64_t row = 0; row < rows; row += kStripRows) {
      data.insert(data.end(), strip.begin(), strip.end());
      block_scales.insert(block_scales.end(), strip_scales.begin(), strip_scales.end());
    }
    tensor.name = "w";
    tensor.dtype = dtype;
    tensor.shape = {rows, kHidden};
    tensor.data = data;
    tensor.block_scales = block_scales;
  }
};

int64_t rows_of_bytes(DType dtype, int64_t bytes) {
  return std::max<int64_t>(bytes / row_bytes(dtype, kHidden) / kStripRows, 1) * kStripRows;
}

struct ProductCase {
  DType dtype = DType::kF32;
  int64_t rows = 1;
  bool hot = false;
};

void product(benchmark::State& state, Ops& ops, const ProductCase& c) {
  const int64_t outputs = rows_of_bytes(c.dtype, c.hot ? kHotBytes : kMemoryBytes);
  const Matrix matrix(c.dtype, outputs);
  const std::unique_ptr<Weight> weight = ops.prepare(Checkpoint(), matrix.tensor);
  const std::vector<float> x = random_values(c.rows * kHidden);
  std::vector<float> y(static_cast<size_t>(c.rows * outputs));
  const Product work{weight.get(), {y.data(), c.rows, outputs, outputs}};
  for (auto _ : state) {
    ops.matmul({x.data(), c.rows, kHidden, kHidden}, {&work, 1});
    benchmark::ClobberMemory();
  }
  const auto passes = static_cast<double>(state.iterations());
  const auto per_second = [&](int64_t amount) {
    return benchmark::Counter(passes * static_cast<double>(amount), benchmark::Counter::kIsRate);
  };
  state.counters["op/s"] = per_second(2 * c.rows * outputs * kHidden);
  state.counters["B/s"] = per_second(weight->resident_bytes);
}

/// An operation over [rows, cols] values in place.
struct ValuesCase {
  const char* name;
  int64_t cols;
  void (*run)(Ops& ops, Rows x, ConstRows y);
};

const std::vector<float>& norm_weight() {
  static const std::vector<float> kWeight = random_values(kHidden);
  return kWeight;
}

constexpr ValuesCase kValuesCases[] = {
    {"rms_norm",
     kHidden,
     [](Ops& ops, Rows x, ConstRows y) {
       ops.rms_norm(y, kHidden, norm_weight().data(), 1e-6F, x);
     }},
    {"add_rms_norm",
     kHidden,
     [](Ops& ops, Rows x, ConstRows y) {
       ops.add_rms_norm(x, y, norm_weight().data(), 1e-6F, 0.5F);
     }},
    {"gelu_mul", kFeedForward, [](Ops& ops, Rows x, ConstRows y) { ops.gelu_mul(x, y); }},
    {"softcap", 262144, [](Ops& ops, Rows x, ConstRows) { ops.softcap(x, 30.0F); }}};

void values(benchmark::State& state, Ops& ops, const ValuesCase& c, int64_t rows) {
  std::vector<float> x = random_values(rows * c.cols);
  const std::vector<float> y = random_values(rows * c.cols);
  for (auto _ : state) {
    c.run(ops, {x.data(), rows, c.cols, c.cols}, {y.data(), rows, c.cols, c.cols});
    benchmark::ClobberMemory();
  }
  state.counters["values/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * rows * c.cols), benchmark::Counter::kIsRate
  );
}

void register_all(Ops& ops) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const bool hot : {true, false}) {
      for (const int64_t rows : {1, 2, 4, 8, 9, 12, 16, 32, 64, 256}) {
        const std::string name =
            fmt::format("{}/{}/{}", dtype_facts(dtype).name, rows, hot ? "hot" : "memory");
        benchmark::RegisterBenchmark(
            name.c_str(),
            [&ops, c = ProductCase{dtype, rows, hot}](benchmark::State& state) {
              product(state, ops, c);
            }
        )->UseRealTime();
      }
    }
  }
  for (const ValuesCase& c : kValuesCases) {
    for (const int64_t rows : {1, 8, 256}) {
      benchmark::RegisterBenchmark(
          fmt::format("{}/{}", c.name, rows).c_str(),
          [&ops, &c, rows](benchmark::State& state) { values(state, ops, c, rows); }
      )->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
  const char* threads = std::getenv("OCTET_BENCH_THREADS");
  const std::unique_ptr<octet::Ops> ops =
      octet::make_cpu_ops({.threads = threads != nullptr ? std::atoi(threads) : 0, .isa = ""});
  benchmark::AddCustomContext("backend", std::string(ops->name()));
  octet::register_all(*ops);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
