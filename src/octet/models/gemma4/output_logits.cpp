#include "octet/models/gemma4/output_logits.h"

#include "octet/models/gemma4/config.h"
#include "octet/models/weight_loader.h"

namespace octet {

void norm_and_head(
    Ops& ops, const OutputNorm& norm, TargetModel& target, Rows states, Rows logits
) {
  ops.rms_norm(states, states.cols, norm.weight.data(), norm.epsilon, states);
  target.head(states, logits);
}

OutputLogits::OutputLogits(const Checkpoint& checkpoint, Ops& ops, TargetModel& target)
    : ops_(ops), target_(target) {
  const Gemma4Config config = read_gemma4_config(checkpoint);
  WeightLoader loader(checkpoint, ops, nullptr);
  norm_ = loader.vector("output_norm.weight", config.hidden);
  epsilon_ = config.norm_epsilon;
}

void OutputLogits::from_states(Rows states, Rows logits) {
  norm_and_head(ops_, {norm_, epsilon_}, target_, states, logits);
  if (target_.final_softcap() > 0.0F) {
    ops_.softcap(logits, target_.final_softcap());
  }
}

}  // namespace octet
