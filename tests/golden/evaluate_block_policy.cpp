// The block policy on the fate and sureness of drafts that the shipped pair really makes, on a
// simulated machine with the pair's costs: in texts that the pair was not made for, where drafting
// hardly pays, nothing is lost to plain decoding; in its own dialogues all is gained.

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/chat/chat_format.h"
#include "octet/evaluate/prompt_suite.h"
#include "octet/speculation/cycle.h"
#include "octet/speculation/drafters/wrapped_drafter.h"
#include "support/simulated_decoding.h"
#include "support/trained_pair.h"

namespace octet {
namespace {

using test::Machine;
using test::SimulatedDecoding;

/// A draft at every position of a reply, and how many of its tokens the text went on with.
struct DraftFate {
  int right = 0;
  std::vector<float> confidence;
};
using ReplyFates = std::vector<DraftFate>;  // by position of the anchor; the first is the prompt's

/// Drafts as the drafter inside it, remembers what, and has none of it verified.
class RecordingDrafter : public WrappedDrafter {
 public:
  using WrappedDrafter::WrappedDrafter;

  std::string_view name() const override { return "recording"; }

  void propose(std::span<DraftTask> tasks) override {
    for (DraftTask& task : tasks) {
      task.wants_confidence = true;
    }
    WrappedDrafter::propose(tasks);
    for (const DraftTask& task : tasks) {
      made.push_back(*task.out);
      task.out->clear();
    }
  }

  std::vector<Proposal> made;  // in a row, from the first position on
};

std::vector<ReplyFates> record_fates(
    const std::vector<std::vector<TokenId>>& prompts, int64_t max_tokens
) {
  test::TrainedPair pair = test::load_trained_pair();
  const auto drafter = pair.drafter();
  RecordingDrafter recorder(*drafter);
  Cycle cycle(*pair.target, recorder);
  const std::vector<TokenId> stops(
      pair.tokenizer->stop_ids().begin(), pair.tokenizer->stop_ids().end()
  );
  std::vector<ReplyFates> replies;
  for (const std::vector<TokenId>& prompt : prompts) {
    Sequence sequence;
    sequence.tokens = prompt;
    sequence.prompt_length = std::ssize(prompt);
    sequence.context_length = std::ssize(prompt) + max_tokens;
    sequence.cache = pair.target->new_cache(sequence.context_length, KvType::kBF16);
    sequence.draft_state = recorder.new_state(sequence.context_length);
    sequence.penalties = PenaltyWindow(SamplingParams(), prompt);
    sequence.sampler =
        std::make_shared<const Sampler>(SamplingParams(), pair.target->shape().vocabulary);
    sequence.max_tokens = max_tokens;
    sequence.stop_tokens = stops;
    recorder.made.clear();
    Sequence* const batch[] = {&sequence};
    while (sequence.finish == FinishReason::kNone) {
      cycle.step(batch);
    }
    ReplyFates fates(1);
    const std::span<const TokenId> reply =
        std::span<const TokenId>(sequence.tokens).subspan(prompt.size());
    for (Proposal& proposal : recorder.made) {
      cut_after_end(proposal, stops);
      const auto rest = reply.subspan(fates.size());
      const auto differ =
          std::mismatch(proposal.tokens.begin(), proposal.tokens.end(), rest.begin(), rest.end());
      fates.push_back(
          {static_cast<int>(differ.first - proposal.tokens.begin()), proposal.confidence}
      );
    }
    fates.resize(reply.size());  // no draft where a single token may still come
    replies.push_back(std::move(fates));
  }
  return replies;
}

std::vector<std::vector<TokenId>> mt_bench_prompts() {
  PromptSuite suite;
  read_suite(OCTET_SOURCE_DIR "/tests/golden/mt_bench.jsonl", 0, BadLines::kRefuse, suite);
  const test::TrainedPair pair = test::load_trained_pair();
  std::vector<std::vector<TokenId>> prompts;
  for (const SuitePrompt& prompt : suite.prompts) {
    const std::vector<ChatMessage> messages = {{ChatRole::kUser, prompt.turns.front()}};
    prompts.push_back(encode_chat(*pair.tokenizer, messages, ChatOptions{}));
  }
  return prompts;
}

/// What steps of the pair cost on two cores of a desktop machine, in plain steps.
constexpr Machine kPairCosts = {.plain_ms = 1.0, .row_ms = 0.32, .draft_ms = 1.4, .pause_ms = 0.7};

int room_at(const ReplyFates& reply, size_t at) {
  const auto drafts = static_cast<int>(std::ssize(reply[at].confidence));
  return std::min(drafts, static_cast<int>(reply.size() - at) - 1);
}

double fixed_ms(std::span<const ReplyFates> replies, int length) {
  double ms = 0.0;
  for (const ReplyFates& reply : replies) {
    for (size_t at = 1; at < reply.size();) {
      const int drafts = std::min(length, room_at(reply, at));
      ms += kPairCosts.block_ms(drafts);
      at += static_cast<size_t>(std::min(reply[at].right, drafts)) + 1;
    }
  }
  return ms;
}

double best_fixed_ms(std::span<const ReplyFates> replies) {
  double best = fixed_ms(replies, 0);
  for (int length = 1; length <= test::kSimulatedDrafts; ++length) {
    best = std::min(best, fixed_ms(replies, length));
  }
  return best;
}

/// One reply after the other, mean of several noises of the machine. `costs_known`: as after
/// learn_costs().
double adaptive_ms(std::span<const ReplyFates> replies, bool costs_known) {
  constexpr uint64_t kSeeds = 20;
  double ms = 0.0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimulatedDecoding decoding(kPairCosts, 0.05, seed);
    if (costs_known) {
      decoding.learn_costs();
    }
    for (const ReplyFates& reply : replies) {
      decoding.begin_reply();
      for (size_t at = 1; at < reply.size();) {
        const int64_t before = decoding.outcome.tokens;
        decoding.step(reply[at].right, reply[at].confidence, room_at(reply, at));
        at += static_cast<size_t>(decoding.outcome.tokens - before);
      }
    }
    ms += decoding.outcome.ms / kSeeds;
  }
  return ms;
}

TEST(ShippedPairBlockPolicy, LosesNothingWhereDraftsAreSeldomAccepted) {
  const std::vector<ReplyFates> replies = record_fates(mt_bench_prompts(), 400);
  const double plain = fixed_ms(replies, 0);
  ASSERT_GT(plain, 3000.0);
  for (int length = 1; length <= test::kSimulatedDrafts; ++length) {
    EXPECT_GT(fixed_ms(replies, length), 1.2 * plain) << "these texts should not pay";
  }
  const double known = adaptive_ms(replies, true) / plain;
  const double unknown = adaptive_ms(replies, false) / plain;
  RecordProperty("known", std::to_string(known));
  RecordProperty("unknown", std::to_string(unknown));
  EXPECT_LE(known, 1.01);
  EXPECT_LE(unknown, 1.01);
}

TEST(ShippedPairBlockPolicy, LosesLittleInRepliesOfAFewTokens) {
  std::vector<ReplyFates> replies = record_fates(mt_bench_prompts(), 8);
  const double plain = fixed_ms(replies, 0);
  const double known = adaptive_ms(replies, true) / plain;
  RecordProperty("known", std::to_string(known));
  EXPECT_LE(known, 1.02);
}

TEST(ShippedPairBlockPolicy, GainsWhatIsToBeHadInItsOwnDialogues) {
  const std::vector<std::vector<TokenId>> prompts =
      test::held_out_prompts(*test::load_trained_pair().tokenizer, 144);
  const std::vector<ReplyFates> replies = record_fates(prompts, 200);
  const double best = best_fixed_ms(replies);
  ASSERT_LT(best, 0.75 * fixed_ms(replies, 0));
  const double known = adaptive_ms(replies, true) / best;
  RecordProperty("known", std::to_string(known));
  EXPECT_LE(known, 1.0);
}

}  // namespace
}  // namespace octet
