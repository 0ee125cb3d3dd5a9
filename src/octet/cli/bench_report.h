// Shows what a cycle bench measured: tables for people, JSON for machines. No measuring here
// (bench/). Invariant: every figure shown was measured, or is a
// floor or ratio made from measured ones.
#pragma once

#include <string>

#include "octet/bench/cycle_bench.h"
#include "octet/cli/memory_figures.h"

namespace octet::cli {

struct BenchHeading {
  std::string model;
  std::string draft_model;  // empty: none
  std::string draft_head;   // the stored one in use; empty: the pair's
  std::string backend;      // "cpu/avx512, 2 threads"
  std::string activation;   // of products with NVFP4 weights: "auto", "fast" ...
  double load_seconds = 0.0;
  MemoryFigures memory;  // without the buffer that limits of the machine are measured with
};

std::string bench_table(const BenchHeading& heading, const CycleReport& report);
std::string bench_json(const BenchHeading& heading, const CycleReport& report);

}  // namespace octet::cli
