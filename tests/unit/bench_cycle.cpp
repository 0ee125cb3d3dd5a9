// The bench's arithmetic on made-up times, its probes, and one real run on a random tiny pair.
#include <cmath>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "octet/base/thread_pool.h"
#include "octet/bench/cycle_bench.h"
#include "octet/bench/machine_probe.h"
#include "octet/kernels/cpu/isa_table.h"
#include "octet/kernels/profiling_ops.h"
#include "octet/models/load_model.h"
#include "support/random_models.h"

namespace octet {
namespace {

CycleRow row(std::string name, std::vector<double> ms) {
  CycleRow result;
  result.name = std::move(name);
  result.ms = std::move(ms);
  return result;
}

TEST(CycleReport, TakesRatiosInsideARoundBeforeItsMedian) {
  CycleReport report;
  // The machine was twice as slow in the second round; ratios of medians would say 1.5, 2 and 3
  // mixed up.
  report.rows = {
      row("C_t", {50, 100, 60}),
      row("C_v(8)", {100, 200, 120}),
      row("C_d", {25, 50, 30}),
      row("inject(4)", {5, 10, 6})};
  EXPECT_DOUBLE_EQ(report.ratio_to_plain("C_v(8)", 0), 2.0);
  EXPECT_DOUBLE_EQ(report.ratio_to_plain("C_d", 0), 0.5);
  EXPECT_DOUBLE_EQ(report.speedup(5.2, 0), 2.0);
  EXPECT_EQ(report.ratio_to_plain("C_v(8)", 4096), 0.0);  // not measured there
  EXPECT_EQ(report.speedup(5.2, 4096), 0.0);
}

TEST(ProbeKernels, CountTheirWorkAndReadEveryByte) {
  for (const cpu::KernelTable* table : cpu::runnable_tables()) {
    const cpu::ProbeKernels& probe = table->probe;
    EXPECT_GE(probe.int8_operations(100000), 100000) << table->name;
    EXPECT_GE(probe.float_operations(100000), 100000) << table->name;
    if (probe.bf16_operations != nullptr) {
      const int64_t done = probe.bf16_operations(100000);
      EXPECT_TRUE(done == 0 || done >= 100000) << table->name << " " << done;
    }
    std::vector<std::byte> data(8192, std::byte{1});
    for (const int streams : {1, 2, 4, 8}) {
      const uint64_t before = probe.read(data.data(), std::ssize(data), streams);
      for (size_t at = 0; at < data.size(); at += 61) {
        data[at] ^= std::byte{4};
        EXPECT_NE(probe.read(data.data(), std::ssize(data), streams), before)
            << table->name << " byte " << at << " streams " << streams;
        data[at] ^= std::byte{4};
      }
    }
  }
}

TEST(CycleBench, MeasuresEveryPartOfAPairAndItsFloor) {
  auto backend = std::make_unique<ProfilingOps>(make_cpu_ops({.threads = 2, .isa = "portable"}));
  ProfilingOps& profiler = *backend;
  const auto target = load_target(test::make_gemma({}, 1), *backend, {});
  const auto drafter = load_drafter(test::make_dflash({}, 2), *backend, *target, {});
  ThreadPool pool(2);
  MachineProbe probe(cpu::portable_table().probe, pool, int64_t{1} << 20);
  CycleBenchOptions options;
  options.contexts = {0, 100};
  options.prompts = {40};
  options.rounds = 2;
  int rounds = 0;
  options.progress = [&](int round) { rounds = round; };
  options.compare_ms = [] { return 12.5; };
  const CycleReport report = run_cycle_bench({*target, drafter.get(), probe, profiler}, options);

  EXPECT_EQ(rounds, 2);
  EXPECT_EQ(report.limits.size(), 2U);
  EXPECT_EQ(report.compare_ms, (std::vector<double>{12.5, 12.5}));
  for (const char* name : {"C_t", "C_v(2)", "C_v(8)", "C_d", "inject(4)", "first token"}) {
    for (const int64_t context : options.contexts) {
      const CycleRow* measured = report.find(name, context);
      ASSERT_NE(measured, nullptr) << name;
      EXPECT_EQ(measured->ms.size(), 2U) << name;
      EXPECT_GT(measured->best_ms(), 0.0) << name;
      EXPECT_GT(measured->floor_bytes, 0) << name;
      EXPECT_GT(measured->median_floor_ratio(), 0.0) << name;
      EXPECT_FALSE(measured->profile.empty()) << name;
    }
  }
  // By hand, from the shapes. A row's products are 38,912 multiply-adds; two layers see the window
  // of 8 keys, two all of them.
  EXPECT_EQ(report.find("C_t", 100)->float_operations, 2 * (38912 + 4 * 8 * 32 + 4 * 101 * 64));
  EXPECT_EQ(
      report.find("C_v(8)", 100)->float_operations, 2 * (8 * 38912 + 4 * 64 * 32 + 4 * 836 * 64)
  );
  EXPECT_EQ(
      report.find("C_t", 100)->floor_bytes - report.find("C_t", 0)->floor_bytes,
      2 * 2 * 2 * (7 + 100) * 32 * 2  // stored rows are 32 values wide at least
  );
  // A block's products, and 156 keys in each of its two layers behind a context of the window's 16.
  EXPECT_EQ(report.find("C_d", 100)->float_operations, 2 * (137216 + 2 * 156 * 64));
  EXPECT_EQ(
      report.find("C_d", 100)->floor_bytes - report.find("C_d", 0)->floor_bytes,
      2 * 2 * 2 * (23 - 8) * 32 * 2
  );
  EXPECT_EQ(report.find("inject(4)", 100)->float_operations, 2 * 4 * 4096);
  const CycleRow* prefill = report.find("prefill", 0);
  EXPECT_EQ(prefill->rows, 40);
  EXPECT_EQ(prefill->ms.size(), 1U);
  EXPECT_GT(prefill->first_ms, 0.0);
  EXPECT_FALSE(prefill->first_profile.empty());
  EXPECT_FALSE(prefill->profile.empty());
  // Sixteen rows reach the highest tap and are injected, one the head; all leave their keys.
  EXPECT_EQ(prefill->float_operations, 2 * (723968 + 98560 + 16 * 4096));
  EXPECT_EQ(report.find("first token", 0)->float_operations, 2 * (453632 + 32256 + 16 * 4096));
  EXPECT_EQ(
      report.find("first token", 100)->float_operations,
      2 * (453632 + 2 * 2 * 16 * 8 * 32 + 2 * (16 * 101 + 120 + 116) * 64 + 16 * 4096)
  );
  EXPECT_GT(report.speedup(4.0, 0), 0.0);
  options.prompt_rounds = 0;
  EXPECT_EQ(
      run_cycle_bench({*target, drafter.get(), probe, profiler}, options).find("prefill", 0),
      nullptr
  );
}

TEST(CycleBench, VerifiesTheBlockOfTheDrafter) {
  CycleReport made_up;
  made_up.rows = {
      row("C_t", {50}),
      row("C_v(4)", {75}),
      row("C_v(8)", {100}),
      row("C_d", {20}),
      row("inject(4)", {5})};
  made_up.verify_rows = 4;
  EXPECT_DOUBLE_EQ(made_up.speedup(3.0, 0), 3.0 / 2.0);

  auto backend = std::make_unique<ProfilingOps>(make_cpu_ops({.threads = 1, .isa = "portable"}));
  ProfilingOps& profiler = *backend;
  const auto target = load_target(test::make_gemma({}, 1), *backend, {});
  const auto drafter = load_drafter(test::make_dflash({.block = 12}, 2), *backend, *target, {});
  ThreadPool pool(1);
  MachineProbe probe(cpu::portable_table().probe, pool, int64_t{1} << 20);
  CycleBenchOptions options;
  options.contexts = {0};
  options.prompts = {};
  options.rounds = 1;
  options.verify_rows = 12;
  const CycleReport report = run_cycle_bench({*target, drafter.get(), probe, profiler}, options);
  EXPECT_EQ(report.verify_rows, 12);
  ASSERT_NE(report.find("C_v(12)", 0), nullptr);
  EXPECT_EQ(report.find("C_v(12)", 0)->rows, 12);
  EXPECT_EQ(report.find("C_v(13)", 0), nullptr);
  EXPECT_EQ(report.find("C_d", 0)->rows, 12);
  EXPECT_GT(report.speedup(4.0, 0), 0.0);
  options.verify_rows = 4;  // a shorter block; the published one is measured all the same
  const CycleReport shorter = run_cycle_bench({*target, drafter.get(), probe, profiler}, options);
  EXPECT_NE(shorter.find("C_v(8)", 0), nullptr);
}

TEST(ProfilingOps, PassesResultsThroughAndNamesWhatRan) {
  ProfilingOps ops(make_cpu_ops({.threads = 1, .isa = "portable"}));
  std::vector<float> x = {1, 2, 3, 4};
  const std::vector<float> y = {10, 20, 30, 40};
  ops.add({x.data(), 1, 4, 4}, {y.data(), 1, 4, 4});
  EXPECT_EQ(x, (std::vector<float>{11, 22, 33, 44}));
  const ProfilingOps::Profile profile = ops.take();
  ASSERT_EQ(profile.size(), 1U);
  EXPECT_EQ(profile.begin()->first, "add");
  EXPECT_EQ(profile.begin()->second.calls, 1);
  EXPECT_TRUE(ops.take().empty());
}

}  // namespace
}  // namespace octet
