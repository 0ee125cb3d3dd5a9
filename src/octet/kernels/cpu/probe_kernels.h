// Loops that do nothing but reach a limit of the machine: reading memory, int8 dot products,
// float32 multiply-adds, bfloat16 dot products. They are the denominators of every ratio that
// `octet bench` prints; no model uses them. Invariant: the work is done in full (results are
// consumed), and the counts returned are exact.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octet::cpu {

struct ProbeKernels {
  /// Reads data[0, bytes) once, as `streams` interleaved linear streams; bytes is a multiple of 512
  /// * streams. Returns a value that depends on every byte.
  uint64_t (*read)(const std::byte* data, int64_t bytes, int streams) noexcept;
  /// At least `operations` int8 multiply or add operations in registers; returns how many.
  int64_t (*int8_operations)(int64_t operations) noexcept;
  /// The same for float32 multiply-adds (each counts as two).
  int64_t (*float_operations)(int64_t operations) noexcept;
  /// The same for products of bfloat16 pairs summed in float32. Null for a set that has none; 0
  /// operations on a CPU that lacks them.
  int64_t (*bf16_operations)(int64_t operations) noexcept = nullptr;
};

}  // namespace octet::cpu
