#include "octet/sampling/sampling_params.h"

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "octet/base/error.h"

namespace octet {
namespace {

struct BadField {
  std::string field;
  std::string range;  // must appear in the message
  std::function<void(SamplingParams&)> spoil;
};

TEST(SamplingParams, NamesTheFieldAndItsRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<BadField> cases = {
      {"temperature", "[0, 100]", [](auto& p) { p.temperature = -0.1F; }},
      {"temperature", "[0, 100]", [](auto& p) { p.temperature = 999999.0F; }},
      {"temperature", "[0, 100]", [](auto& p) { p.temperature = kNan; }},
      {"temperature", "[0, 100]", [](auto& p) { p.temperature = kInfinity; }},
      {"top_k", "0 or more", [](auto& p) { p.top_k = -1; }},
      {"top_p", "(0, 1]", [](auto& p) { p.top_p = 0.0F; }},
      {"top_p", "(0, 1]", [](auto& p) { p.top_p = -1.0F; }},
      {"top_p", "(0, 1]", [](auto& p) { p.top_p = 1.5F; }},
      {"top_p", "(0, 1]", [](auto& p) { p.top_p = kNan; }},
      {"min_p", "[0, 1)", [](auto& p) { p.min_p = 1.0F; }},
      {"min_p", "[0, 1)", [](auto& p) { p.min_p = -0.5F; }},
      {"repetition_penalty", "(0, 10]", [](auto& p) { p.repetition_penalty = 0.0F; }},
      {"repetition_penalty", "(0, 10]", [](auto& p) { p.repetition_penalty = -1.0F; }},
      {"repetition_penalty", "(0, 10]", [](auto& p) { p.repetition_penalty = kNan; }},
      {"presence_penalty", "[-10, 10]", [](auto& p) { p.presence_penalty = -kInfinity; }},
      {"frequency_penalty", "[-10, 10]", [](auto& p) { p.frequency_penalty = 11.0F; }},
      {"penalty_last_n", "0 or more", [](auto& p) { p.penalty_last_n = -1; }},
      {"logit_bias",
       "[0, 10)",
       [](auto& p) {
         p.logit_bias = {{10, 1.0F}};
       }},
      {"logit_bias",
       "[0, 10)",
       [](auto& p) {
         p.logit_bias = {{-1, 1.0F}};
       }},
      {"logit_bias",
       "[-100, 100]",
       [](auto& p) {
         p.logit_bias = {{3, 101.0F}};
       }},
      {"logit_bias",
       "[-100, 100]",
       [](auto& p) {
         p.logit_bias = {{3, kNan}};
       }},
      {"logit_bias",
       "at most 4096",
       [](auto& p) { p.logit_bias.resize(static_cast<size_t>(kMaxLogitBiases) + 1); }},
      {"logit_bias", "at least one to remain", [](auto& p) {
         for (TokenId t = 0; t < 10; ++t) {
           p.logit_bias.push_back({t, kBanBias});
         }
       }}};
  for (const BadField& bad : cases) {
    SamplingParams params;
    bad.spoil(params);
    try {
      params.validate(10);
      ADD_FAILURE() << bad.field << " accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      const std::string message = error.what();
      EXPECT_NE(message.find(bad.field), std::string::npos) << message;
      EXPECT_NE(message.find(bad.range), std::string::npos) << message;
    }
  }
}

TEST(SamplingParams, EdgesOfTheRangesAreAllowed) {
  SamplingParams params;
  params.validate(2);
  params.temperature = 100.0F;
  params.top_k = 1 << 30;
  params.top_p = 1.0F;
  params.min_p = 0.0F;
  params.repetition_penalty = 10.0F;
  params.presence_penalty = -10.0F;
  params.frequency_penalty = 10.0F;
  params.logit_bias = {{0, -100.0F}, {1, 100.0F}};
  params.validate(2);
}

}  // namespace
}  // namespace octet
