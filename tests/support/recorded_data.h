// Prompts for the shipped pair, and runs of generate_data over them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "octet/evaluate/generate_data.h"
#include "support/shipped_pair.h"
#include "support/temporary_directory.h"

namespace octet::test {

inline ShippedPair& pair() {
  static ShippedPair shipped;
  return shipped;
}

inline std::vector<SuitePrompt> some_prompts() {
  std::vector<SuitePrompt> prompts(7);
  prompts[0].turns = {"What is the capital of Finland?", "And of France?"};
  prompts[1].turns = {"Turn on the light in the kitchen."};
  prompts[2].system = "You are a helpful shop assistant.";
  prompts[2].turns = {"I am looking for a birthday present.", "Thank you!"};
  prompts[3].turns = {"I want to hear a story with a mouse."};
  prompts[4].turns = {"What is 12 plus 30?"};
  prompts[5].turns = {"Explain attention in two sentences."};
  prompts[6].turns = {"Tell me a short story about a fox."};
  for (size_t i = 0; i < prompts.size(); ++i) {
    prompts[i].id = std::to_string(i);
  }
  return prompts;
}

inline DataRequest request_for(
    const TemporaryDirectory& directory, std::span<const SuitePrompt> prompts, float temperature
) {
  DataRequest request;
  request.prompts = prompts;
  request.sampling.temperature = temperature;
  request.sampling.seed = 11;
  request.thinking_share = 0.5;
  request.max_tokens = 40;
  request.draft_max = 7;
  request.target_digest = 77;
  const std::span<const int> taps = pair().drafter->taps();
  request.taps.assign(taps.begin(), taps.end());
  request.feature_type = FeatureType::kF32;
  request.output = directory.file("data.jsonl");
  request.feature_output = directory.file("data.features");
  return request;
}

inline EngineOptions engine_options(int parallel) {
  EngineOptions options;
  options.context_length = 1024;
  options.parallel = parallel;
  return options;
}

inline DataResult make(const DataRequest& request, Drafter& drafter = *pair().drafter) {
  Engine engine(*pair().target, drafter, pair().tokenizer, engine_options(request.concurrency));
  const ChatTemplate chat_template(BuiltinTemplate::kBolt);
  return generate_data(
      engine, *pair().target, chat_template, pair().tokenizer, request, [](int64_t, int64_t) {}
  );
}

/// The features of that run.
inline FeatureFile recorded(const DataRequest& request) {
  make(request);
  return FeatureFile::open(request.feature_output);
}

}  // namespace octet::test
