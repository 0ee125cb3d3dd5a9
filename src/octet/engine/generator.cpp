#include "octet/engine/generator.h"

#include <optional>

#include "octet/engine/reply_run.h"
#include "octet/engine/slot.h"

namespace octet {

struct Generator::State {
  Cycle cycle;
  Slot slot;
  std::optional<BlockPolicy> habits;
  ReplyContext context;

  State(TargetModel& target, Drafter& drafter, const Tokenizer& tokenizer, GeneratorOptions options)
      : cycle(target, drafter),
        slot(
            target,
            drafter,
            checked_context_length(options.context_length, target.shape()),
            options.kv_type
        ),
        context{target, drafter, tokenizer, cycle.costs(), habits} {}
};

Generator::Generator(
    TargetModel& target, Drafter& drafter, const Tokenizer& tokenizer, GeneratorOptions options
)
    : state_(std::make_unique<State>(target, drafter, tokenizer, options)) {}

Generator::~Generator() = default;

GenerateResult Generator::generate(const GenerateRequest& request, OnStep on_step) {
  Slot& slot = state_->slot;
  check_request(request, state_->context, slot.sequence.context_length);
  const int64_t kept = slot.reusable(request.prompt).length;
  slot.keep(kept);
  try {
    ReplyRun run(state_->context, request, slot, kept);
    std::vector<Sequence*> batch = {&slot.sequence};
    while (!run.finished()) {
      const StepReport report = state_->cycle.step(batch);
      const SequenceStep& step = report.sequences.front();
      on_step({run.take(step, report.times), step, report.times});
    }
    return run.take_result();
  } catch (...) {
    slot.forget();  // the caches may stand anywhere
    throw;
  }
}

GenerateResult Generator::generate(const GenerateRequest& request) {
  return generate(request, [](const GenerateStep& /*step*/) {});
}

void Generator::reset() {
  state_->slot.forget();
}

int64_t Generator::context_length() const {
  return state_->slot.sequence.context_length;
}

int64_t Generator::kv_bytes() const {
  return state_->slot.sequence.cache->bytes();
}

int64_t Generator::draft_context_bytes() const {
  return state_->slot.sequence.draft_state->bytes();
}

double GenerateResult::tokens_per_second() const {
  return times.decode_ms > 0.0
             ? static_cast<double>(acceptance.published) * 1000.0 / times.decode_ms
             : 0.0;
}

}  // namespace octet
