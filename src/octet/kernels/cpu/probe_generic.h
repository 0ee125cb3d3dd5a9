// The probes' loops, written once over the vector operations of an instruction set. Each ISA folder
// includes this file in its own namespace after defining a struct `Probe` with: Integers, Floats
// (register types), zero_integers(), load(pointer), combine(Integers, Integers), fold(Integers) ->
// uint64_t, dot(sum, a, b), kDotOperations, ramp(), zero_floats(), multiply_add(sum, a, b), half(),
// kFloatOperations. No include guard by intent: it defines functions in the including namespace.

/// How far ahead of the reads the prefetches run; 2 KiB was the best of several on the reference
/// machine.
inline constexpr int64_t kPrefetchBytes = 2048;
/// Independent chains: enough to hide the latency of two pipes.
inline constexpr int kChains = 12;

inline uint64_t probe_read(const std::byte* data, int64_t bytes, int streams) noexcept {
  const int64_t stream_bytes = bytes / streams;
  auto total = Probe::zero_integers();
  for (int64_t at = 0; at < stream_bytes; at += 512) {
    for (int stream = 0; stream < streams; ++stream) {
      const std::byte* line = data + stream * stream_bytes + at;
      for (int64_t i = 0; i < 512; i += 64) {
        __builtin_prefetch(line + kPrefetchBytes + i);
      }
      for (int64_t i = 0; i < 512; i += static_cast<int64_t>(sizeof(typename Probe::Integers))) {
        total = Probe::combine(total, Probe::load(line + i));
      }
    }
  }
  return Probe::fold(total);
}

/// Repeats step(sum) on kChains independent sums until at least `operations` are done, each step
/// being `step_operations`; returns how many were.
template <typename Register, typename Step>
inline int64_t run_chains(
    int64_t operations, int64_t step_operations, Register start, Step step
) noexcept {
  Register sums[kChains];
  for (Register& sum : sums) {
    sum = start;
  }
  const int64_t rounds = operations / (step_operations * kChains) + 1;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (Register& sum : sums) {
      sum = step(sum);
    }
  }
  asm volatile("" : : "m"(sums));  // the compiler must believe that somebody reads them
  return rounds * step_operations * kChains;
}

inline int64_t probe_int8(int64_t operations) noexcept {
  const auto a = Probe::ramp();
  return run_chains(operations, Probe::kDotOperations, Probe::zero_integers(), [a](auto sum) {
    return Probe::dot(sum, a, a);
  });
}

inline int64_t probe_float(int64_t operations) noexcept {
  const auto a = Probe::half();
  return run_chains(operations, Probe::kFloatOperations, Probe::zero_floats(), [a](auto sum) {
    return Probe::multiply_add(sum, a, a);
  });
}
