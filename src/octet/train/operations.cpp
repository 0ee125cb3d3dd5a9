#include "octet/train/operations.h"

#include <ATen/Parallel.h>
#include <cmath>
#include <functional>
#include <vector>

#include "octet/base/check.h"

namespace octet::train {
namespace {

constexpr int64_t kGrain = 16;          // rows that one thread takes at least
constexpr int64_t kValueGrain = 16384;  // values likewise

using torch::autograd::Function;

// --- product
// --------------------------------------------------------------------------------------

struct RoundedProduct : Function<RoundedProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight) {
    const Tensor x16 = x.to(at::kBFloat16);
    const Tensor w16 = weight.to(at::kBFloat16);
    context->save_for_backward({x16, w16});
    return at::mm(x16, w16.t()).to(x.scalar_type());
  }
  static Gradients backward(AutogradContext* context, const Gradients& gradients) {
    const Gradients saved = context->get_saved_variables();
    const at::ScalarType type = gradients[0].scalar_type();
    const Tensor gradient = gradients[0].to(at::kBFloat16);
    const Tensor of_x = at::mm(gradient, saved[1]).to(type);
    Tensor of_weight;
    if (context->needs_input_grad(1)) {
      of_weight = at::mm(gradient.t(), saved[0]).to(type);
    }
    return {of_x, of_weight};
  }
};

// --- norm
// -----------------------------------------------------------------------------------------

/// In parts that do not wait for each other.
template <typename T>
T dot_product(const T* a, const T* b, int64_t count) {
  constexpr int64_t kParts = 16;
  T parts[kParts] = {};
  int64_t i = 0;
  for (; i + kParts <= count; i += kParts) {
    for (int64_t p = 0; p < kParts; ++p) {
      parts[p] += a[i + p] * b[i + p];
    }
  }
  T sum = 0;
  for (; i < count; ++i) {
    sum += a[i] * b[i];
  }
  for (const T part : parts) {
    sum += part;
  }
  return sum;
}

template <typename T>
void norm_rows(
    const T* x, const T* weight, int64_t rows, int64_t cols, double epsilon, T* out, T* inverse
) {
  at::parallel_for(0, rows, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * cols;
      const auto mean =
          static_cast<double>(dot_product(row, row, cols)) / static_cast<double>(cols);
      const T scale = static_cast<T>(1.0 / std::sqrt(mean + epsilon));
      inverse[r] = scale;
      for (int64_t c = 0; c < cols; ++c) {
        out[r * cols + c] = row[c] * scale * weight[c];
      }
    }
  });
}

/// With s = (mean(x^2) + eps)^-1/2 and y = g w: dx = s (y - x s^2 mean(x y)). Overwrites nothing
/// but dx.
template <typename T>
void norm_rows_gradient(
    const T* x,
    const T* weight,
    const T* inverse,
    const T* gradient,
    int64_t rows,
    int64_t cols,
    T* out
) {
  at::parallel_for(0, rows, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * cols;
      const T* g = gradient + r * cols;
      T* y = out + r * cols;
      for (int64_t c = 0; c < cols; ++c) {
        y[c] = g[c] * weight[c];
      }
      const T s = inverse[r];
      const T pull = s * s * dot_product(row, y, cols) / static_cast<T>(cols);
      for (int64_t c = 0; c < cols; ++c) {
        y[c] = s * (y[c] - row[c] * pull);
      }
    }
  });
}

struct RmsNorm : Function<RmsNorm> {
  static Tensor forward(
      AutogradContext* context, const Tensor& input, const Tensor& weight, double epsilon
  ) {
    const Tensor x = input.contiguous();
    const int64_t cols = x.size(-1);
    const int64_t rows = x.numel() / cols;
    Tensor out = at::empty_like(x);
    Tensor inverse = at::empty({rows}, x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm", [&] {
      norm_rows<scalar_t>(
          x.data_ptr<scalar_t>(),
          weight.data_ptr<scalar_t>(),
          rows,
          cols,
          epsilon,
          out.data_ptr<scalar_t>(),
          inverse.data_ptr<scalar_t>()
      );
    });
    context->save_for_backward({x, weight, inverse});
    return out;
  }
  static Gradients backward(AutogradContext* context, const Gradients& gradients) {
    const Gradients saved = context->get_saved_variables();
    const Tensor& x = saved[0];
    const Tensor& weight = saved[1];
    const Tensor gradient = gradients[0].contiguous();
    const int64_t cols = x.size(-1);
    const int64_t rows = x.numel() / cols;
    Tensor of_x = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rms_norm_gradient", [&] {
      norm_rows_gradient<scalar_t>(
          x.data_ptr<scalar_t>(),
          weight.data_ptr<scalar_t>(),
          saved[2].data_ptr<scalar_t>(),
          gradient.data_ptr<scalar_t>(),
          rows,
          cols,
          of_x.data_ptr<scalar_t>()
      );
    });
    Tensor of_weight;
    if (context->needs_input_grad(1)) {
      // The scale of a row moves into the gradient, and the sum over rows is one product.
      const Tensor scaled = gradient.reshape({rows, cols}) * x.reshape({rows, cols});
      of_weight = at::mv(scaled.t(), saved[2]);
    }
    return {of_x, of_weight, Tensor()};
  }
};

// --- rotation
// -------------------------------------------------------------------------------------

/// direction 1 rotates, -1 rotates back, which is also the gradient.
template <typename T>
void rotate_rows(
    const Tensor& x, const Tensor& cosines, const Tensor& sines, T direction, Tensor& out
) {
  const int64_t heads = x.size(1);
  const int64_t width = x.size(2);
  const int64_t half = width / 2;
  const int64_t pairs = cosines.size(1);
  const T* in = x.data_ptr<T>();
  const T* cosine = cosines.data_ptr<T>();
  const T* sine = sines.data_ptr<T>();
  T* to = out.data_ptr<T>();
  at::parallel_for(0, x.size(0), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* c = cosine + r * pairs;
      const T* s = sine + r * pairs;
      for (int64_t h = 0; h < heads; ++h) {
        const T* from = in + (r * heads + h) * width;
        T* head = to + (r * heads + h) * width;
        for (int64_t i = 0; i < pairs; ++i) {
          head[i] = from[i] * c[i] - direction * from[i + half] * s[i];
          head[i + half] = from[i + half] * c[i] + direction * from[i] * s[i];
        }
        for (int64_t i = pairs; i < half; ++i) {
          head[i] = from[i];
          head[i + half] = from[i + half];
        }
      }
    }
  });
}

Tensor rotated(const Tensor& input, const Tensor& cosines, const Tensor& sines, int direction) {
  const Tensor x = input.contiguous();
  Tensor out = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate", [&] {
    rotate_rows<scalar_t>(x, cosines, sines, static_cast<scalar_t>(direction), out);
  });
  return out;
}

struct Rotation : Function<Rotation> {
  static Tensor forward(
      AutogradContext* context, const Tensor& x, const Tensor& cosines, const Tensor& sines
  ) {
    context->save_for_backward({cosines, sines});
    return rotated(x, cosines, sines, 1);
  }
  static Gradients backward(AutogradContext* context, const Gradients& gradients) {
    const Gradients saved = context->get_saved_variables();
    return {rotated(gradients[0], saved[0], saved[1], -1), Tensor(), Tensor()};
  }
};

// --- gates
// ----------------------------------------------------------------------------------------

/// An activation's value and derivative at one place.
template <typename T>
struct ValueAndSlope {
  T value;
  T slope;
};

/// `curve` is what is dear of an activation, from libtorch's vectors; `at` makes value and slope of
/// it without further functions.
struct Silu {
  /// 1 / (1 + exp(-x))
  static Tensor curve(const Tensor& x) { return at::sigmoid(x); }
  template <typename T>
  static ValueAndSlope<T> at(T x, T sigmoid) {
    return {x * sigmoid, sigmoid * (T{1} + x * (T{1} - sigmoid))};
  }
};

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
struct GeluTanh {
  static constexpr double kRoot = 0.79788456080286535588;
  static constexpr double kCubic = 0.044715;

  /// The hyperbolic tangent.
  static Tensor curve(const Tensor& x) {
    Tensor inner = at::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gelu_inner", [&] {
      const auto* from = x.data_ptr<scalar_t>();
      auto* to = inner.data_ptr<scalar_t>();
      at::parallel_for(0, x.numel(), kValueGrain, [&](int64_t begin, int64_t end) {
        constexpr auto kRootT = static_cast<scalar_t>(kRoot);
        constexpr auto kCubicT = static_cast<scalar_t>(kCubic);
        for (int64_t i = begin; i < end; ++i) {
          to[i] = kRootT * (from[i] + kCubicT * from[i] * from[i] * from[i]);
        }
      });
    });
    return inner.tanh_();
  }
  template <typename T>
  static ValueAndSlope<T> at(T x, T tanh) {
    constexpr T kRootT = static_cast<T>(kRoot);
    constexpr T kCubicT = static_cast<T>(kCubic);
    const T inner_slope = kRootT * (T{1} + T{3} * kCubicT * x * x);
    return {
        T{0.5} * x * (T{1} + tanh),
        T{0.5} * (T{1} + tanh) + T{0.5} * x * (T{1} - tanh * tanh) * inner_slope};
  }
};

template <typename Activation>
struct Gate : Function<Gate<Activation>> {
  static Tensor forward(AutogradContext* context, const Tensor& gate_in, const Tensor& up_in) {
    const Tensor gate = gate_in.contiguous();
    const Tensor up = up_in.contiguous();
    const Tensor curve = Activation::curve(gate);
    Tensor out = at::empty_like(gate);
    AT_DISPATCH_FLOATING_TYPES(gate.scalar_type(), "gate", [&] {
      const auto* g = gate.data_ptr<scalar_t>();
      const auto* c = curve.data_ptr<scalar_t>();
      const auto* u = up.data_ptr<scalar_t>();
      auto* o = out.data_ptr<scalar_t>();
      at::parallel_for(0, gate.numel(), kValueGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          o[i] = Activation::at(g[i], c[i]).value * u[i];
        }
      });
    });
    context->save_for_backward({gate, up, curve});
    return out;
  }
  static Gradients backward(AutogradContext* context, const Gradients& gradients) {
    const Gradients saved = context->get_saved_variables();
    const Tensor gradient = gradients[0].contiguous();
    Tensor of_gate = at::empty_like(saved[0]);
    Tensor of_up = at::empty_like(saved[0]);
    AT_DISPATCH_FLOATING_TYPES(gradient.scalar_type(), "gate_gradient", [&] {
      const auto* g = saved[0].data_ptr<scalar_t>();
      const auto* u = saved[1].data_ptr<scalar_t>();
      const auto* c = saved[2].data_ptr<scalar_t>();
      const auto* d = gradient.data_ptr<scalar_t>();
      auto* to_gate = of_gate.data_ptr<scalar_t>();
      auto* to_up = of_up.data_ptr<scalar_t>();
      at::parallel_for(0, gradient.numel(), kValueGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto [value, slope] = Activation::at(g[i], c[i]);
          to_gate[i] = d[i] * u[i] * slope;
          to_up[i] = d[i] * value;
        }
      });
    });
    return {of_gate, of_up};
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, Precision precision) {
  OCTET_CHECK(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1));
  return precision == Precision::kBF16 ? RoundedProduct::apply(x, weight) : at::mm(x, weight.t());
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  const Tensor factors = weight.defined() ? weight : at::ones({x.size(-1)}, x.options());
  return RmsNorm::apply(x, factors, epsilon);
}

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
  OCTET_CHECK(x.dim() == 3 && cosines.size(0) == x.size(0) && 2 * cosines.size(1) <= x.size(2));
  return Rotation::apply(x, cosines, sines);
}

Tensor silu_gate(const Tensor& gate, const Tensor& up) {
  return Gate<Silu>::apply(gate, up);
}

Tensor gelu_gate(const Tensor& gate, const Tensor& up) {
  return Gate<GeluTanh>::apply(gate, up);
}

Angles rope_angles(
    const Tensor& positions, double base, int64_t head_dim, int64_t pairs, at::ScalarType type
) {
  const Tensor exponents = at::arange(pairs, at::kDouble) * (-2.0 / static_cast<double>(head_dim));
  const Tensor frequencies = at::exp(exponents * std::log(base));
  const Tensor angles = at::outer(positions.to(at::kDouble), frequencies);
  return {at::cos(angles).to(type), at::sin(angles).to(type)};
}

}  // namespace octet::train
