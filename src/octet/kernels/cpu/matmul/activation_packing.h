// Rounds and interleaves activations: the records of activation_layout.h. Compiled once per
// instruction set by the file that fills its MatmulKernels; plain loops that compilers vectorise.
// Invariant: bit-identical records on every instruction set (but for the bias sums, which depend on
// Lanes::kSignedBias).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "octet/kernels/cpu/matmul/activation_layout.h"

namespace octet::cpu {

template <typename Lanes>
struct ActivationPacking {
  static void pack_f32(const ActivationChunk& chunk) noexcept {
    const int padded = (chunk.count + 1) / 2 * 2;
    auto* out = reinterpret_cast<float*>(chunk.record);
    for (int m = 0; m < chunk.rows; ++m) {
      const float* values = chunk.values + m * chunk.stride;
      for (int k = 0; k < chunk.count; ++k) {
        out[k * chunk.rows + m] = values[k];
      }
      if (padded > chunk.count) {
        out[chunk.count * chunk.rows + m] = 0.0F;
      }
    }
  }

  static void pack_int8_per_32(const ActivationChunk& chunk) noexcept {
    using Record = Int8Per32Record;
    const int rows = chunk.rows;
    const int blocks = (chunk.count + kBlockValues - 1) / kBlockValues;
    std::byte* record = chunk.record;
    for (int m = 0; m < rows; ++m) {
      for (int b = 0; b < blocks; ++b) {
        const float* values = chunk.values + m * chunk.stride + b * kBlockValues;
        float padded[kBlockValues] = {};
        if (chunk.count - b * kBlockValues < kBlockValues) {
          std::memcpy(padded, values, sizeof(float) * (chunk.count - b * kBlockValues));
          values = padded;
        }
        int8_t codes[kBlockValues];
        const float scale = quantize<kBlockValues>(values, codes);
        const int first = sum16(codes);
        const int second = sum16(codes + 16);
        store_codes<kBlockValues>(codes, record + 32 * b * rows, rows, m);
        const int at = b * rows + m;
        store(record + Record::scales_offset(rows, blocks), at, scale);
        store(
            record + Record::sums_offset(rows, blocks),
            at,
            scale * static_cast<float>(first + second)
        );
        store(
            record + Record::bias32_offset(rows, blocks), at, -Lanes::kSignedBias * (first + second)
        );
        std::byte* bias16 = record + Record::bias16_offset(rows, blocks);
        store(bias16, 2 * b * rows + m, -Lanes::kSignedBias * first);
        store(bias16, (2 * b + 1) * rows + m, -Lanes::kSignedBias * second);
      }
    }
  }

  static void pack_int8_per_256(const ActivationChunk& chunk) noexcept {
    using Record = Int8Per256Record;
    const int rows = chunk.rows;
    std::byte* record = chunk.record;
    for (int m = 0; m < rows; ++m) {
      int8_t codes[kChunkValues];
      const float scale = quantize<kChunkValues>(chunk.values + m * chunk.stride, codes);
      store_codes<kChunkValues>(codes, record, rows, m);
      store(record + Record::scales_offset(rows), m, scale);
      int sums[8];
      for (int group = 0; group < 8; ++group) {
        const int first = sum16(codes + 32 * group);
        const int second = sum16(codes + 32 * group + 16);
        sums[group] = first + second;
        std::byte* six_bias = record + Record::six_bias_offset(rows);
        store(six_bias, 2 * group * rows + m, -32 * first);
        store(six_bias, (2 * group + 1) * rows + m, -32 * second);
        store(
            record + Record::bias32_offset(rows),
            group * rows + m,
            -Lanes::kSignedBias * sums[group]
        );
      }
      std::byte* pairs = record + Record::pair_sums_offset(rows);
      store(pairs, m, pair(sums[0], sums[2]));
      store(pairs, rows + m, pair(sums[1], sums[3]));
      store(pairs, 2 * rows + m, pair(sums[4], sums[6]));
      store(pairs, 3 * rows + m, pair(sums[5], sums[7]));
    }
  }

 private:
  /// Writes the codes of n values and returns their scale, as the contract says. A NaN or infinity
  /// among the values makes the scale NaN or infinite and so reaches the result.
  template <int n>
  static float quantize(const float* values, int8_t* codes) noexcept {
    uint32_t largest = 0;  // magnitudes order like their bits
    for (int i = 0; i < n; ++i) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(values[i]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
    const float amax = std::bit_cast<float>(largest);
    float inverse = 127.0F / amax;
    if (!(inverse <= std::numeric_limits<float>::max()) || inverse == 0.0F) {
      std::memset(codes, 0, n);
      return amax / 127.0F;
    }
    // Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves it in the low bits.
    constexpr float kRound = 12582912.0F;
    for (int i = 0; i < n; ++i) {
      codes[i] = static_cast<int8_t>(std::bit_cast<uint32_t>(values[i] * inverse + kRound) & 0xFFU);
    }
    return amax / 127.0F;
  }

  static int sum16(const int8_t* codes) noexcept {
    int sum = 0;
    for (int i = 0; i < 16; ++i) {
      sum += codes[i];
    }
    return sum;
  }

  template <int n>
  static void store_codes(const int8_t* codes, std::byte* out, int rows, int row) noexcept {
    for (int g = 0; g < n / 4; ++g) {
      std::memcpy(out + 4 * (g * rows + row), codes + 4 * g, 4);
    }
  }

  static uint32_t pair(int low, int high) noexcept {
    return (static_cast<uint32_t>(low) & 0xFFFFU) | (static_cast<uint32_t>(high) << 16);
  }

  template <typename T>
  static void store(std::byte* array, int index, T value) noexcept {
    static_assert(sizeof(T) == 4);
    std::memcpy(array + 4 * static_cast<ptrdiff_t>(index), &value, 4);
  }
};

}  // namespace octet::cpu
