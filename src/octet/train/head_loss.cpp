#include "octet/train/head_loss.h"

#include <algorithm>

#include "octet/base/check.h"

namespace octet::train {
namespace {

/// Bounds the logits in memory: rows times vocabulary. Fewer rows than `kLeastRows` would read the
/// head's weight too often.
constexpr int64_t kLogitsAtATime = int64_t{1} << 22;
constexpr int64_t kLeastRows = 256;

Tensor capped(const Tensor& logits, double cap) {
  return cap > 0.0 ? at::tanh(logits / cap) * cap : logits;
}

struct PartResult {
  Tensor loss;      // scalar
  Tensor gradient;  // of the states
  Tensor of_head;   // gradient of the head's weight, where it is wanted
  Tensor hits;
};

/// The head as products take it, rounded once and not for every part.
class RoundedHead {
 public:
  explicit RoundedHead(const OutputHead& head)
      : type_(head.precision == Precision::kBF16 ? at::kBFloat16 : head.weight.scalar_type()),
        weight_(head.weight.detach().to(type_)) {}

  Tensor logits(const Tensor& states) const { return product(states, weight_.t()); }
  Tensor gradient_of_states(const Tensor& gradient) const { return product(gradient, weight_); }
  /// [vocabulary, hidden]
  Tensor gradient_of_weight(const Tensor& gradient, const Tensor& states) const {
    return product(gradient.t(), states);
  }

 private:
  Tensor product(const Tensor& a, const Tensor& b) const {
    return at::mm(a.to(type_), b.to(type_)).to(a.scalar_type());
  }

  at::ScalarType type_;
  Tensor weight_;
};

/// With y the capped logits and t the target distribution: loss = -w sum t log softmax(y), and its
/// gradient in y is w (softmax(y) - t); the cap's slope is 1 - (y / cap)^2.
PartResult part_loss(
    const Tensor& states,
    const RoundedHead& head,
    double softcap,
    const HeadLossRows& rows,
    bool head_trains
) {
  const Tensor logits = head.logits(states);
  const Tensor y = capped(logits, softcap);
  const Tensor log_shares = at::log_softmax(y, -1);
  const Tensor labels = rows.labels.unsqueeze(1);
  PartResult result;
  result.hits = logits.argmax(-1) == rows.labels;
  Tensor gradient = at::exp(log_shares);
  if (rows.teacher.defined()) {
    const Tensor target = at::softmax(rows.teacher.to(y.scalar_type()), -1);
    result.loss = -at::dot((target * log_shares).sum(-1), rows.weights);
    gradient -= target;
  } else {
    result.loss = -at::dot(log_shares.gather(1, labels).squeeze(1), rows.weights);
    gradient.scatter_add_(1, labels, at::full_like(labels, -1.0, gradient.options()));
  }
  gradient *= rows.weights.unsqueeze(1);
  if (softcap > 0.0) {
    gradient *= 1.0 - at::square(y / softcap);
  }
  result.gradient = head.gradient_of_states(gradient);
  if (head_trains) {
    result.of_head = head.gradient_of_weight(gradient, states);
  }
  return result;
}

struct HeadLossFunction : torch::autograd::Function<HeadLossFunction> {
  static Tensor forward(
      AutogradContext* context,
      const Tensor& states,
      const Tensor& weight,
      const OutputHead& head,
      const HeadLossRows& rows,
      int64_t step,
      Tensor* hits
  ) {
    const bool head_trains = weight.requires_grad();
    Tensor of_head = head_trains ? at::zeros_like(weight) : Tensor();
    const RoundedHead rounded(head);
    Tensor loss = at::zeros({}, states.options());
    Tensor gradient = at::empty_like(states);
    std::vector<Tensor> all_hits;
    for (int64_t begin = 0; begin < states.size(0); begin += step) {
      const int64_t end = std::min(begin + step, states.size(0));
      HeadLossRows part = {rows.labels.slice(0, begin, end), rows.weights.slice(0, begin, end), {}};
      if (rows.teacher.defined()) {
        part.teacher = rows.teacher.slice(0, begin, end);
      }
      const PartResult result =
          part_loss(states.slice(0, begin, end), rounded, head.softcap, part, head_trains);
      loss += result.loss;
      gradient.slice(0, begin, end).copy_(result.gradient);
      if (head_trains) {
        of_head += result.of_head;
      }
      all_hits.push_back(result.hits);
    }
    *hits = at::cat(all_hits);
    context->save_for_backward({gradient, of_head});
    return loss;
  }
  static Gradients backward(AutogradContext* context, const Gradients& gradients) {
    const Gradients saved = context->get_saved_variables();
    return {
        saved[0] * gradients[0],
        saved[1].defined() ? saved[1] * gradients[0] : Tensor(),
        Tensor(),
        Tensor(),
        Tensor(),
        Tensor()};
  }
};

}  // namespace

HeadLoss head_loss(
    const Tensor& states, const OutputHead& head, const HeadLossRows& rows, int64_t rows_at_a_time
) {
  OCTET_CHECK(states.size(0) > 0 && rows.labels.size(0) == states.size(0));
  const int64_t step = rows_at_a_time > 0
                           ? rows_at_a_time
                           : std::max(kLeastRows, kLogitsAtATime / head.weight.size(0));
  HeadLoss result;
  result.loss = HeadLossFunction::apply(states, head.weight, head, rows, step, &result.hits);
  return result;
}

}  // namespace octet::train
