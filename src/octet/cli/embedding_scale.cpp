#include "octet/cli/embedding_scale.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/chat/chat_format.h"
#include "octet/cli/json_writer.h"
#include "octet/cli/terminal.h"
#include "octet/engine/calibrate_embedding_scale.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/evaluate/data_outputs.h"
#include "octet/formats/atomic_file.h"
#include "octet/formats/json_value.h"

namespace octet::cli {
namespace {

constexpr const char* kScaleKey = "dflash.embedding_scale";
constexpr int64_t kCalibrationTokens = 256;
constexpr std::array<const char*, 4> kCalibrationPrompts = {
    "Explain how rain forms.",
    "Write a short story about a lighthouse keeper.",
    "List five uses of a paper clip.",
    "What should I pack for a week in the mountains?",
};

std::string side_path(const Checkpoint& drafter) {
  std::string path = drafter.path;
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path + ".side.json";
}

/// By member of the stored file: which files the scale was measured with.
std::array<std::pair<const char*, std::string>, 2> pair_digests(
    const Checkpoint& drafter, const Checkpoint& target
) {
  return {{
      {"drafter", spell_digest(checkpoint_digest(drafter))},
      {"target", spell_digest(checkpoint_digest(target))},
  }};
}

/// Nullopt as well where the scale is that of other files.
std::optional<float> stored_scale(
    const std::string& path, const Checkpoint& drafter, const Checkpoint& target
) {
  if (!std::filesystem::exists(path)) {
    return std::nullopt;
  }
  const JsonValue document = read_json_object(path);
  const std::optional<double> scale = document.find_number("embedding_scale");
  if (!scale || !(*scale > 0.0)) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "{}: \"embedding_scale\" is not a positive number; delete the file to measure again",
            path
        )
    );
  }
  for (const auto& [member, digest] : pair_digests(drafter, target)) {
    const std::string* measured = document.find_string(member);
    if (measured == nullptr || *measured != digest) {
      return std::nullopt;
    }
  }
  return static_cast<float>(*scale);
}

/// Writes what was measured beside the drafter; a folder that cannot be written only costs
/// measuring again.
bool store(
    const std::string& path, const EmbeddingScaleCalibration& calibration, const ScaleInputs& inputs
) {
  JsonWriter json;
  json.begin_object();
  json.member("embedding_scale", static_cast<double>(calibration.scale));
  for (const auto& [member, digest] : pair_digests(*inputs.drafter, inputs.target_checkpoint)) {
    json.member(member, digest);
  }
  json.member("measured_over_tokens", calibration.tokens);
  json.key("mean_acceptance_length").begin_array();
  for (const EmbeddingScaleTrial& trial : calibration.trials) {
    json.begin_object().member("scale", static_cast<double>(trial.scale));
    json.member("tokens_per_step", trial.mean_acceptance_length).end_object();
  }
  json.end_array().end_object();
  const std::string text = json.text() + "\n";
  try {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(text)));
    file.finish();
  } catch (const Error&) {
    return false;
  }
  return true;
}

EmbeddingScaleCalibration measure(const ScaleInputs& inputs) {
  ChatOptions chat;
  chat.thinking = false;
  std::vector<std::vector<TokenId>> prompts;
  for (const char* text : kCalibrationPrompts) {
    const std::array<ChatMessage, 1> message = {ChatMessage{ChatRole::kUser, text}};
    prompts.push_back(encode_chat(inputs.tokenizer, message, chat));
  }
  const auto make = [&](float scale) {
    DrafterOptions options;
    options.embedding_scale = {EmbeddingScale::Kind::kValue, scale};
    return load_drafter(inputs.drafter, inputs.ops, inputs.target, options);
  };
  const std::array<float, 2> scales = {
      1.0F, std::sqrt(static_cast<float>(inputs.target.shape().hidden))};
  return calibrate_embedding_scale(
      inputs.target,
      make,
      {.scales = scales,
       .prompts = prompts,
       .stop_tokens = inputs.tokenizer.stop_ids(),
       .tokens = kCalibrationTokens}
  );
}

ChosenScale chosen(float scale, const std::string& source) {
  return {{EmbeddingScale::Kind::kValue, scale}, fmt::format("{:g} ({})", scale, source)};
}

}  // namespace

std::optional<ChosenScale> known_embedding_scale(
    std::optional<float> asked, const Checkpoint& drafter, const Checkpoint& target
) {
  if (asked) {
    return chosen(*asked, "as asked for");
  }
  if (const auto in_file = drafter.metadata.find_number(kScaleKey)) {
    return ChosenScale{
        {EmbeddingScale::Kind::kFile, 1.0F}, fmt::format("{:g} (from the file)", *in_file)};
  }
  const std::string path = side_path(drafter);
  if (const std::optional<float> scale = stored_scale(path, drafter, target)) {
    return chosen(*scale, "measured before, stored in " + path);
  }
  return std::nullopt;
}

ChosenScale choose_embedding_scale(const ScaleInputs& inputs) {
  if (auto known = known_embedding_scale(inputs.asked, *inputs.drafter, inputs.target_checkpoint)) {
    return std::move(*known);
  }
  Progress progress(true);
  progress.show("Measuring the drafter's embedding scale, once");
  const EmbeddingScaleCalibration calibration = measure(inputs);
  const std::string path = side_path(*inputs.drafter);
  const bool stored = store(path, calibration, inputs);
  return chosen(
      calibration.scale,
      stored ? "measured now, stored in " + path : "measured now, could not be stored"
  );
}

}  // namespace octet::cli
