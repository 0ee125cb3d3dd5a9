// Rounds and interleaves activations: the records of activation_layout.h. Compiled once per
// instruction set by the file that fills its MatmulKernels; plain loops that compilers vectorise.
// Invariant: bit-identical records on every instruction set (but for the bias sums, which depend on
// Lanes::kSignedBias).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "octet/kernels/cpu/matmul/activation_layout.h"
#include "octet/tensor/nvfp4_activations.h"

namespace octet::cpu {

template <typename Lanes>
struct ActivationPacking {
  static void pack_f32(const ActivationChunk& chunk) noexcept {
    const int64_t padded = (chunk.count + 1) / 2 * 2;
    auto* out = reinterpret_cast<float*>(chunk.record);
    if (chunk.rows == 1) {
      std::memcpy(out, chunk.values, sizeof(float) * chunk.count);
    }
    for (int64_t m = 0; m < chunk.rows && chunk.rows > 1; ++m) {
      const float* values = chunk.values + m * chunk.stride;
      for (int64_t k = 0; k < chunk.count; ++k) {
        out[k * chunk.rows + m] = values[k];
      }
    }
    for (int64_t i = chunk.count * chunk.rows; i < padded * chunk.rows; ++i) {
      out[i] = 0.0F;
    }
  }

  static void pack_bf16(const ActivationChunk& chunk) noexcept {
    pack_f32(chunk);
    auto* values = reinterpret_cast<float*>(chunk.record);
    for (int64_t i = 0; i < chunk.count * chunk.rows; ++i) {
      values[i] = bf16_to_f32(f32_to_bf16(values[i]));
    }
  }

  static void pack_e2m1_per_16(const ActivationChunk& chunk) noexcept {
    using Record = E2M1Per16Record;
    const int64_t rows = chunk.rows;
    const int64_t blocks = (chunk.count + kBlockValues - 1) / kBlockValues;
    std::byte* scales = chunk.record + Record::scales_offset(rows, blocks);
    std::byte* bias16 = chunk.record + Record::bias16_offset(rows, blocks);
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t group = 0; group < 2 * blocks; ++group) {
        Nvfp4ActivationBlock block;  // zeros where the last block of 32 is half empty
        if (group * kNvfp4ActivationBlock < chunk.count) {
          block = round_nvfp4_activations(
              chunk.values + m * chunk.stride + group * kNvfp4ActivationBlock, chunk.input_scale
          );
        }
        int32_t sum = 0;
        for (const int8_t code : block.doubled_codes) {
          sum += code;
        }
        for (int64_t quad = 0; quad < 4; ++quad) {
          std::memcpy(
              chunk.record + 4 * ((4 * group + quad) * rows + m),
              block.doubled_codes.data() + 4 * quad,
              4
          );
        }
        store(scales, group * rows + m, block.scale);
        store(bias16, group * rows + m, -Lanes::kSignedBias * sum);
      }
    }
  }

  static void pack_int8_per_32(const ActivationChunk& chunk) noexcept {
    using Record = Int8Per32Record;
    const int64_t rows = chunk.rows;
    const int64_t blocks = (chunk.count + kBlockValues - 1) / kBlockValues;
    std::byte* record = chunk.record;
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t b = 0; b < blocks; ++b) {
        const float* values = chunk.values + m * chunk.stride + b * kBlockValues;
        float padded[kBlockValues] = {};
        if (chunk.count - b * kBlockValues < kBlockValues) {
          std::memcpy(padded, values, sizeof(float) * (chunk.count - b * kBlockValues));
          values = padded;
        }
        Rounded<kBlockValues> rounded;
        const float scale = round_to_int8(values, rounded);
        const int first = rounded.sums[0];
        const int second = rounded.sums[1];
        store_codes(rounded, record + 32 * b * rows, rows, m);
        const int64_t at = b * rows + m;
        store(record + Record::scales_offset(rows, blocks), at, scale);
        const float sum = scale * static_cast<float>(first + second);
        store(record + Record::sums_offset(rows, blocks), at, sum);
        const int bias = -Lanes::kSignedBias;
        store(record + Record::bias32_offset(rows, blocks), at, bias * (first + second));
        std::byte* bias16 = record + Record::bias16_offset(rows, blocks);
        store(bias16, 2 * b * rows + m, bias * first);
        store(bias16, (2 * b + 1) * rows + m, bias * second);
      }
    }
  }

  static void pack_int8_per_256(const ActivationChunk& chunk) noexcept {
    using Record = Int8Per256Record;
    const int64_t rows = chunk.rows;
    std::byte* record = chunk.record;
    for (int64_t m = 0; m < rows; ++m) {
      Rounded<kChunkValues> rounded;
      const float scale = round_to_int8(chunk.values + m * chunk.stride, rounded);
      store_codes(rounded, record, rows, m);
      store(record + Record::scales_offset(rows), m, scale);
      int sums[8];
      for (int64_t group = 0; group < 8; ++group) {
        sums[group] = rounded.sums[2 * group] + rounded.sums[2 * group + 1];
        store(
            record + Record::bias32_offset(rows),
            group * rows + m,
            -Lanes::kSignedBias * sums[group]
        );
      }
      for (int64_t group = 0; group < 16; ++group) {
        store(record + Record::six_bias_offset(rows), group * rows + m, -32 * rounded.sums[group]);
      }
      std::byte* pairs = record + Record::pair_sums_offset(rows);
      store(pairs, m, pair(sums[0], sums[2]));
      store(pairs, rows + m, pair(sums[1], sums[3]));
      store(pairs, 2 * rows + m, pair(sums[4], sums[6]));
      store(pairs, 3 * rows + m, pair(sums[5], sums[7]));
    }
  }

 private:
  template <int n>
  struct Rounded {
    int8_t codes[n];
    int32_t sums[n / 16];  // of sixteen codes each
  };

  /// Rounds n values and returns their scale, as the contract says. A NaN or infinity among the
  /// values makes the scale NaN or infinite and so reaches the result.
  template <int n>
  static float round_to_int8(const float* values, Rounded<n>& rounded) noexcept {
    // Magnitudes order like their bits, and compilers vectorise a maximum of integers.
    int32_t largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, std::bit_cast<int32_t>(values[i]) & 0x7FFFFFFF);
    }
    const float amax = std::bit_cast<float>(largest);
    const float inverse = 127.0F / amax;
    if (!(inverse <= std::numeric_limits<float>::max()) || inverse == 0.0F) {
      rounded = {};
      return amax / 127.0F;
    }
    // Adding 1.5 * 2^23 rounds to an integer, ties to even, and leaves it in the low bits.
    constexpr float kRound = 12582912.0F;
    int32_t wide[n];
    for (int64_t i = 0; i < n; ++i) {
      wide[i] =
          std::bit_cast<int32_t>(values[i] * inverse + kRound) - std::bit_cast<int32_t>(kRound);
    }
    for (int64_t i = 0; i < n; ++i) {
      rounded.codes[i] = static_cast<int8_t>(wide[i]);
    }
    for (int64_t group = 0; group < n / 16; ++group) {
      int32_t sum = 0;
      for (int64_t i = 0; i < 16; ++i) {
        sum += wide[16 * group + i];
      }
      rounded.sums[group] = sum;
    }
    return amax / 127.0F;
  }

  template <int n>
  static void store_codes(
      const Rounded<n>& rounded, std::byte* out, int64_t rows, int64_t row
  ) noexcept {
    if (rows == 1) {
      std::memcpy(out, rounded.codes, n);
      return;
    }
    for (int64_t g = 0; g < n / 4; ++g) {
      std::memcpy(out + 4 * (g * rows + row), rounded.codes + 4 * g, 4);
    }
  }

  static uint32_t pair(int low, int high) noexcept {
    return (static_cast<uint32_t>(low) & 0xFFFFU) | (static_cast<uint32_t>(high) << 16);
  }

  template <typename T>
  static void store(std::byte* array, int64_t index, T value) noexcept {
    static_assert(sizeof(T) == 4);
    std::memcpy(array + 4 * index, &value, 4);
  }
};

}  // namespace octet::cpu
