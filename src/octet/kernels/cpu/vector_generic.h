// The vector kernels but attention (attend_generic.h), written once over a lane type and compiled
// in every ISA folder. Invariant: sums run over 64 partial sums (element i belongs to partial sum i
// % 64), added in a fixed tree, so all instruction sets add in the same order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "octet/kernels/cpu/attend_generic.h"
#include "octet/kernels/cpu/vector_kernels.h"
#include "octet/kernels/cpu/vector_math.h"
#include "octet/tensor/types/float_formats.h"

namespace octet::cpu {

template <class L>
struct VectorCode {
  using Floats = typename L::Floats;
  using Math = VectorMath<L>;
  static constexpr int64_t kLanes = 16;

  /// x[i] = f(x[i])
  template <class F>
  static void map(float* x, int64_t count, F f) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      L::store(x + i, f(L::load(x + i)));
    }
    if (i < count) {
      L::store_part(x + i, f(L::load_part(x + i, count - i)), count - i);
    }
  }

  /// x[i] = f(x[i], y[i])
  template <class F>
  static void map(float* x, const float* y, int64_t count, F f) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      L::store(x + i, f(L::load(x + i), L::load(y + i)));
    }
    if (i < count) {
      const int64_t left = count - i;
      L::store_part(x + i, f(L::load_part(x + i, left), L::load_part(y + i, left)), left);
    }
  }

  static void gelu_mul(float* gate, const float* up, int64_t count) noexcept {
    map(gate, up, count, [](Floats g, Floats u) { return L::mul(Math::gelu(g), u); });
  }
  static void silu_mul(float* gate, const float* up, int64_t count) noexcept {
    map(gate, up, count, [](Floats g, Floats u) { return L::mul(Math::silu(g), u); });
  }
  static void add(float* x, const float* y, int64_t count) noexcept {
    map(x, y, count, [](Floats a, Floats b) { return L::add(a, b); });
  }
  static void add_scale(float* x, const float* y, float scale, int64_t count) noexcept {
    const Floats s = L::set(scale);
    map(x, y, count, [s](Floats a, Floats b) { return L::mul(L::add(a, b), s); });
  }
  static void scale(float* x, float scale, int64_t count) noexcept {
    const Floats s = L::set(scale);
    map(x, count, [s](Floats a) { return L::mul(a, s); });
  }
  static void softcap(float* x, float cap, int64_t count) noexcept {
    const Floats c = L::set(cap);
    map(x, count, [c](Floats a) { return L::mul(c, Math::hyperbolic_tangent(L::div(a, c))); });
  }
  static void exponential(float* x, int64_t count) noexcept {
    map(x, count, [](Floats a) { return Math::exponential(a); });
  }

  static float sum_of_squares(const float* x, int64_t count) {
    Floats sums[4] = {L::set(0.0F), L::set(0.0F), L::set(0.0F), L::set(0.0F)};
    int64_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      for (int part = 0; part < 4; ++part) {
        const Floats v = L::load(x + i + part * kLanes);
        sums[part] = L::fma(v, v, sums[part]);
      }
    }
    for (int part = 0; i < count; ++part, i += kLanes) {
      const int64_t left = count - i;
      const Floats v = left >= kLanes ? L::load(x + i) : L::load_part(x + i, left);
      sums[part] = L::fma(v, v, sums[part]);
    }
    return L::sum(L::add(L::add(sums[0], sums[2]), L::add(sums[1], sums[3])));
  }

  static float inverse_rms(const float* x, int64_t width, float eps) {
    return 1.0F / std::sqrt(sum_of_squares(x, width) / static_cast<float>(width) + eps);
  }

  static void rms_norm(
      const float* x, const float* weight, int64_t width, float eps, float* out
  ) noexcept {
    const Floats factor = L::set(inverse_rms(x, width, eps));
    for (int64_t i = 0; i < width; i += kLanes) {
      const int64_t count = width - i < kLanes ? width - i : kLanes;
      Floats v = L::mul(load(x + i, count), factor);
      if (weight != nullptr) {
        v = L::mul(v, load(weight + i, count));
      }
      store(out + i, v, count);
    }
  }

  static void add_rms_norm(
      float* residual, const float* x, const float* weight, int64_t width, float eps, float scale
  ) noexcept {
    const Floats factor = L::set(inverse_rms(x, width, eps));
    const Floats s = L::set(scale);
    for (int64_t i = 0; i < width; i += kLanes) {
      const int64_t count = width - i < kLanes ? width - i : kLanes;
      Floats v = L::mul(load(x + i, count), factor);
      if (weight != nullptr) {
        v = L::mul(v, load(weight + i, count));
      }
      store(residual + i, L::mul(L::add(load(residual + i, count), v), s), count);
    }
  }

  static void rotate(
      float* head, int64_t head_dim, int64_t pairs, const float* cosines, const float* sines
  ) noexcept {
    float* partner = head + head_dim / 2;
    for (int64_t i = 0; i < pairs; i += kLanes) {
      const int64_t count = pairs - i < kLanes ? pairs - i : kLanes;
      const Floats a = load(head + i, count);
      const Floats b = load(partner + i, count);
      const Floats c = load(cosines + i, count);
      const Floats s = load(sines + i, count);
      store(head + i, L::fnma(b, s, L::mul(a, c)), count);
      store(partner + i, L::fma(a, s, L::mul(b, c)), count);
    }
  }

  static float largest(const float* x, int64_t count) {
    // max(x, best) keeps `best` when x is NaN.
    Floats best[4];
    for (Floats& b : best) {
      b = L::set(-std::numeric_limits<float>::infinity());
    }
    int64_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      for (int part = 0; part < 4; ++part) {
        best[part] = L::max(L::load(x + i + part * kLanes), best[part]);
      }
    }
    float lanes[kLanes];
    L::store(lanes, L::max(L::max(best[0], best[1]), L::max(best[2], best[3])));
    float result = lanes[0];
    for (const float lane : lanes) {
      result = lane > result ? lane : result;
    }
    for (; i < count; ++i) {
      result = x[i] > result ? x[i] : result;
    }
    return result;
  }

  static int64_t argmax(const float* x, int64_t count) noexcept {
    // Only the block where the maximum rose last is searched for its place.
    constexpr int64_t kBlock = 4096;
    float best = -std::numeric_limits<float>::infinity();
    int64_t best_begin = 0;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const float here = largest(x + begin, count - begin < kBlock ? count - begin : kBlock);
      if (here > best) {
        best = here;
        best_begin = begin;
      }
    }
    for (int64_t i = best_begin; i < count; ++i) {
      if (x[i] == best) {
        return i;
      }
    }
    return 0;
  }

  static void to_bf16(const float* x, uint16_t* out, int64_t count) noexcept {
    for (int64_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<uint32_t>(x[i]);
      const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
      const uint32_t quiet = (bits >> 16) | 0x40U;
      const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
      out[i] = static_cast<uint16_t>(is_nan ? quiet : rounded);
    }
  }

  /// The formula of the weight type (tensor/types/q8_0.h), but ties go to even.
  static uint16_t to_q8(const float* x, int8_t* codes) noexcept {
    constexpr int kBlock = 32;
    constexpr uint16_t kNanHalf = 0x7E00;
    constexpr uint32_t kInfinityBits = 0x7F800000;
    constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
    uint32_t largest = 0;                  // as bits, NaN is above all numbers
    for (int i = 0; i < kBlock; ++i) {
      const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
    const float scale = std::bit_cast<float>(largest) / 127.0F;
    const uint16_t half = largest >= kInfinityBits ? kNanHalf : f32_to_f16(scale);
    const bool codes_matter = largest < kInfinityBits && half != 0;
    const float inverse = codes_matter ? 1.0F / scale : 0.0F;
    for (int i = 0; i < kBlock; ++i) {
      const float rounded = codes_matter ? (x[i] * inverse + kRound) - kRound : 0.0F;
      codes[i] = static_cast<int8_t>(rounded);
    }
    return half;
  }

 private:
  static Floats load(const float* from, int64_t count) {
    return count == kLanes ? L::load(from) : L::load_part(from, count);
  }
  static void store(float* to, Floats x, int64_t count) {
    if (count == kLanes) {
      L::store(to, x);
    } else {
      L::store_part(to, x, count);
    }
  }
};

template <class L>
constexpr VectorKernels make_vector_kernels() {
  using Code = VectorCode<L>;
  using Attend = AttendCode<L>;
  return {
      .rms_norm = Code::rms_norm,
      .add_rms_norm = Code::add_rms_norm,
      .rotate = Code::rotate,
      .gelu_mul = Code::gelu_mul,
      .silu_mul = Code::silu_mul,
      .add = Code::add,
      .add_scale = Code::add_scale,
      .scale = Code::scale,
      .softcap = Code::softcap,
      .exponential = Code::exponential,
      .argmax = Code::argmax,
      .to_bf16 = Code::to_bf16,
      .to_q8 = Code::to_q8,
      .attend_pack = Attend::pack,
      .attend_group = Attend::group,
      .attend_merge = Attend::merge,
      .attend_finish = Attend::finish,
  };
}

}  // namespace octet::cpu
