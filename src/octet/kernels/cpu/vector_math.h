// Elementary functions over lanes (quad_lanes.h says what a lane type offers): e^x, GELU, SiLU,
// tanh with a cap. Not libm: these have no errors to report and one order of roundings in all
// instruction sets. Invariant: NaN in, NaN out; bounds are stated at each function and held by
// tests/property/kernels_vector_math.cpp.
#pragma once

namespace octet::cpu {

template <class L>
struct VectorMath {
  using Floats = typename L::Floats;

  /// a[0] + a[1] x + a[2] x^2 + ...
  template <int kCount>
  static Floats polynomial(const float (&a)[kCount], Floats x) {
    Floats sum = L::set(a[kCount - 1]);
    for (int i = kCount - 2; i >= 0; --i) {
      sum = L::fma(sum, x, L::set(a[i]));
    }
    return sum;
  }

  /// e^x within 2 ulp (with separate products and sums: 3); overflows to infinity, underflows
  /// through the subnormal numbers to 0.
  static Floats exponential(Floats x) {
    // e^x = 2^n e^r with n = round(x / ln 2), |r| <= ln 2 / 2. ln 2 is split so that n * kLn2High
    // is exact.
    constexpr float kLog2E = 1.44269504F;
    constexpr float kLn2High = 0.693359375F;
    constexpr float kLn2Low = -2.12194440e-4F;
    constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
    // (e^r - 1 - r) / r^2, interpolated at Chebyshev points; relative error of e^r below 2^-26.
    constexpr float kTail[] = {0.5F, 0.16666578F, 0.041666556F, 0.0083631743F, 0.0013926177F};
    x = L::max(L::set(-104.0F), L::min(L::set(89.0F), x));
    const Floats n = L::sub(L::fma(x, L::set(kLog2E), L::set(kRound)), L::set(kRound));
    const Floats r = L::fnma(n, L::set(kLn2Low), L::fnma(n, L::set(kLn2High), x));
    const Floats above_one = L::fma(L::mul(r, r), polynomial(kTail, r), r);
    return L::times_power(L::add(above_one, L::set(1.0F)), n);
  }

  /// x / (1 + e^-z), that is x * sigmoid(z).
  static Floats gated(Floats x, Floats z) {
    const Floats minus_z = L::sub(L::set(0.0F), z);
    return L::div(x, L::add(L::set(1.0F), exponential(minus_z)));
  }

  static Floats silu(Floats x) { return gated(x, x); }

  /// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
  static Floats gelu(Floats x) {
    constexpr float kTwoSqrtTwoOverPi = 1.59576912F;
    constexpr float kCubic = 0.0713548163F;  // 0.044715 of it
    const Floats slope = L::fma(L::mul(x, x), L::set(kCubic), L::set(kTwoSqrtTwoOverPi));
    return gated(x, L::mul(x, slope));
  }

  /// tanh(x) within 3 ulp.
  static Floats hyperbolic_tangent(Floats x) {
    // (tanh(y) / y - 1) / y^2 in y^2 for y < 0.625, interpolated at Chebyshev points; relative
    // error below 2^-25.
    constexpr float kOdd[] = {
        -0.33333328F, 0.13332719F, -0.053843264F, 0.020961329F, -0.0060451650F};
    constexpr float kPolynomialEnd = 0.625F;  // 1 - 2 / (...) cancels below
    const Floats y = L::abs(x);
    const Floats square = L::mul(y, y);
    const Floats small = L::fma(L::mul(y, square), polynomial(kOdd, square), y);
    const Floats large =
        L::sub(L::set(1.0F), L::div(L::set(2.0F), L::add(exponential(L::add(y, y)), L::set(1.0F))));
    return L::with_sign(L::select_less(y, L::set(kPolynomialEnd), small, large), x);
  }
};

}  // namespace octet::cpu
