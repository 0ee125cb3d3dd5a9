// Trained pairs against an independent engine: greedy continuations token by token, and drafts
// that are really accepted. The peer rounds activations to bf16 and keys and values to f16, so that
// near-ties may differ.
#include <gtest/gtest.h>

#include "octet/formats/open_checkpoint.h"
#include "support/golden_files.h"
#include "support/model_runs.h"

namespace octet::test {
namespace {

struct Continuation {
  std::vector<TokenId> prompt;
  std::vector<TokenId> greedy;
};

std::vector<Continuation> read_continuations(const std::string& path) {
  std::vector<Continuation> out;
  const std::vector<char> text = read_bytes(path);
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find(begin, text.end(), '\n');
    if (end != begin) {
      const JsonValue line = parse_text({begin, end});
      out.push_back(
          {token_list(*line.find_array("prompt_ids")), token_list(*line.find_array("greedy_ids"))}
      );
    }
    begin = end == text.end() ? end : end + 1;
  }
  return out;
}

std::vector<TokenId> joined(const Continuation& continuation) {
  std::vector<TokenId> tokens = continuation.prompt;
  tokens.insert(tokens.end(), continuation.greedy.begin(), continuation.greedy.end());
  return tokens;
}

int64_t best_token(const std::vector<float>& row) {
  return std::max_element(row.begin(), row.end()) - row.begin();
}

/// A pair and what the peer wrote with its target in BF16: eight bits change no more than the peer
/// does.
struct PairForm {
  const char* name;
  std::string target;
  std::string drafter;
  std::string continuations;
};

const std::string kShipped = OCTET_SOURCE_DIR "/models/bolt-tiny/";
// Another pair of the same shape, which others trained.
const std::string kBeside = shared_path("models/bolt-tiny/");

class BoltTiny : public testing::TestWithParam<PairForm> {
 protected:
  void SetUp() override {
    continuations_ = read_continuations(GetParam().continuations);
    ASSERT_EQ(continuations_.size(), 60U);
    ops_ = test_ops(2);
    target_ = load_target(open_checkpoint(GetParam().target), *ops_, {});
    drafter_ = load_drafter(open_checkpoint(GetParam().drafter), *ops_, *target_, {});
  }

  std::vector<Continuation> continuations_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<TargetModel> target_;
  std::unique_ptr<DraftModel> drafter_;
};

INSTANTIATE_TEST_SUITE_P(
    Golden,
    BoltTiny,
    testing::ValuesIn(present<PairForm>(
        {{"Shipped",
          kShipped + "bolt-tiny-q8_0.gguf",
          kShipped + "bolt-tiny-dflash-q8_0.gguf",
          OCTET_SOURCE_DIR "/tests/golden/engine/continuations.jsonl"},
         {"ReceivedQ8_0",
          kBeside + "bolt-tiny-q8_0.gguf",
          kBeside + "bolt-tiny-dflash-q8_0.gguf",
          shared_path("golden/bolt-tiny/continuations.jsonl")},
         {"ReceivedBF16",
          kBeside + "bolt-tiny-bf16.gguf",
          kBeside + "bolt-tiny-dflash-bf16.gguf",
          shared_path("golden/bolt-tiny/continuations.jsonl")}},
        [](const PairForm& form) { return form.target; }
    )),
    [](const testing::TestParamInfo<PairForm>& param) { return param.param.name; }
);

/// Feeding the expected tokens shows the same first difference as generating does.
TEST_P(BoltTiny, GreedyContinuationsOfAnIndependentEngine) {
  constexpr double kNearTie = 0.25;
  int equal = 0;
  int64_t agreed = 0;
  int64_t total = 0;
  for (const Continuation& continuation : continuations_) {
    const TargetRun run = run_target(*target_, joined(continuation), 256, {}, KvType::kBF16);
    bool all = true;
    for (size_t i = 0; i < continuation.greedy.size(); ++i) {
      const std::vector<float>& row = run.logits[continuation.prompt.size() - 1 + i];
      const int64_t best = best_token(row);
      ++total;
      if (best == continuation.greedy[i]) {
        ++agreed;
        continue;
      }
      all = false;
      const float margin =
          row[static_cast<size_t>(best)] - row[static_cast<size_t>(continuation.greedy[i])];
      EXPECT_LT(margin, kNearTie) << "step " << i << ": " << best << " against "
                                  << continuation.greedy[i];
    }
    equal += all ? 1 : 0;
  }
  fmt::print(
      "bolt-tiny {}: {} of {} continuations equal, {} of {} tokens\n",
      GetParam().name,
      equal,
      continuations_.size(),
      agreed,
      total
  );
  EXPECT_GE(equal, 50);
}

/// Mean Kullback-Leibler divergence of b's distributions from a's, in nats a token.
double mean_divergence(const FloatRows& a, const FloatRows& b) {
  const auto log_sum = [](const std::vector<float>& row) {
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0.0;
    for (const float x : row) {
      sum += std::exp(x - largest);
    }
    return largest + std::log(sum);
  };
  double total = 0.0;
  for (size_t r = 0; r < a.size(); ++r) {
    const double a_sum = log_sum(a[r]);
    const double b_sum = log_sum(b[r]);
    for (size_t i = 0; i < a[r].size(); ++i) {
      const double log_p = a[r][i] - a_sum;
      total += std::exp(log_p) * (log_p - (b[r][i] - b_sum));
    }
  }
  return total / static_cast<double>(a.size());
}

/// A trained model on its own texts: 8-bit keys and values against BF16, both with prompts of other
/// lengths than a multiple of anything.
TEST_P(BoltTiny, QuantisedKeysAndValuesKeepTheChoices) {
  constexpr double kNearTie = 0.25;
  int64_t agreed = 0;
  int64_t total = 0;
  double divergence = 0.0;
  for (const Continuation& continuation : continuations_) {
    const std::vector<TokenId> text = joined(continuation);
    const TargetRun bf16 = run_target(*target_, text, 256, {}, KvType::kBF16);
    const TargetRun q8 = run_target(*target_, text, 256, {}, KvType::kQ8);
    divergence += mean_divergence(bf16.logits, q8.logits);
    for (size_t i = 0; i < bf16.logits.size(); ++i) {
      const std::vector<float>& row = bf16.logits[i];
      const auto best = static_cast<size_t>(best_token(row));
      const auto other = static_cast<size_t>(best_token(q8.logits[i]));
      ++total;
      agreed += best == other ? 1 : 0;
      EXPECT_LT(row[best] - row[other], kNearTie) << "position " << i;
    }
  }
  divergence /= static_cast<double>(continuations_.size());
  fmt::print(
      "bolt-tiny {}, q8_0 against bf16 keys and values: {} of {} choices equal, divergence "
      "{:.6f}\n",
      GetParam().name,
      agreed,
      total,
      divergence
  );
  EXPECT_GT(agreed, total * 99 / 100);
  EXPECT_GT(divergence, 0.0);
  EXPECT_LT(divergence, 0.002);
}

/// Drafts after every accepted stretch of the stored text, as the engine would.
TEST_P(BoltTiny, DraftsAreAccepted) {
  int64_t steps = 0;
  int64_t emitted = 0;
  const auto block = static_cast<size_t>(drafter_->shape().block);
  for (const Continuation& continuation : continuations_) {
    const auto tokens = joined(continuation);
    const TargetRun run = run_target(*target_, tokens, 256, drafter_->shape().taps, KvType::kBF16);
    const auto context = drafter_->new_cache(static_cast<int64_t>(tokens.size()));
    size_t n = continuation.prompt.size();
    inject(
        *drafter_, *context, {run.features.begin(), run.features.begin() + static_cast<int64_t>(n)}
    );
    while (n + block < tokens.size()) {
      const FloatRows drafts = draft(*drafter_, *context, tokens[n]);
      size_t accepted = 0;
      while (accepted + 1 < block && best_token(drafts[accepted]) == tokens[n + 1 + accepted]) {
        ++accepted;
      }
      const size_t kept = accepted + 1;
      const auto first = run.features.begin() + static_cast<int64_t>(n);
      inject(*drafter_, *context, {first, first + static_cast<int64_t>(kept)});
      n += kept;
      ++steps;
      emitted += static_cast<int64_t>(kept);
    }
  }
  const double length = static_cast<double>(emitted) / static_cast<double>(steps);
  fmt::print("bolt-tiny {}: {:.2f} tokens a step over {} steps\n", GetParam().name, length, steps);
  EXPECT_GT(length, 4.5);
}

}  // namespace
}  // namespace octet::test
