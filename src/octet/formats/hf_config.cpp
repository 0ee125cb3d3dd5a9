#include "octet/formats/hf_config.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/canonical_metadata.h"
#include "octet/formats/hf_config_keys.h"
#include "octet/formats/hf_dflash_config.h"
#include "octet/formats/hf_gemma4_config.h"
#include "octet/formats/message_text.h"

namespace octet {

namespace {

/// "eos_token_id" and its kind: one number or an array.
std::vector<int64_t> token_ids(const JsonValue& config, std::string_view key) {
  const JsonValue* value = config.find(key);
  std::vector<int64_t> ids;
  if (value == nullptr) {
    return ids;
  }
  const JsonArray single = {*value};
  for (const JsonValue& id : value->array() != nullptr ? *value->array() : single) {
    if (!id.integer() || *id.integer() < 0) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "{} must be a token id or an array of them, found {}", shown(key), id.type_name()
          )
      );
    }
    ids.push_back(*id.integer());
  }
  return ids;
}

void add_special_tokens(Metadata& metadata, const JsonValue& config) {
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"bos_token_id", "tokenizer.ggml.bos_token_id"},
      {"eos_token_id", "tokenizer.ggml.eos_token_id"},
      {"pad_token_id", "tokenizer.ggml.padding_token_id"},
  };
  for (const auto& [from, to] : kKeys) {
    const std::vector<int64_t> ids = token_ids(config, from);
    const bool none = ids.empty() || ids.front() == -1;  // as some writers say that there is none
    if (!none) {
      set_u32_from(metadata, to, from, ids.front());
    }
    if (!none && std::string_view(from) == "eos_token_id") {
      set_u32_array(metadata, "tokenizer.ggml.eos_token_ids", ids);
    }
  }
}

bool names_dflash(const JsonValue& config) {
  if (config.find("dflash_config") != nullptr) {
    return true;
  }
  const JsonArray* architectures = config.find_array("architectures");
  return architectures != nullptr &&
         std::any_of(architectures->begin(), architectures->end(), [](const JsonValue& name) {
           return name.string() != nullptr && name.string()->find("DFlash") != std::string::npos;
         });
}

/// Names vary between exporters and each tensor says by its scales what it is, so only those are
/// refused that name another format, or something that is done to the weights besides.
bool is_supported_algorithm(std::string_view algorithm) {
  const size_t nvfp4 = algorithm.find("NVFP4");
  if (nvfp4 == std::string_view::npos) {
    return algorithm == "MIXED_PRECISION";
  }
  std::string rest(algorithm);
  rest.erase(nvfp4, 5);
  constexpr std::string_view kOthers[] = {"AWQ", "FP8", "INT", "SVD", "W4A8"};
  return std::none_of(std::begin(kOthers), std::end(kOthers), [&](std::string_view other) {
    return rest.find(other) != std::string::npos;
  });
}

}  // namespace

HfConfig read_hf_config(const JsonValue& config) {
  HfConfig result;
  const std::string* type = config.find_string("model_type");
  if (names_dflash(config)) {
    result = read_dflash_config(config);
  } else if (type != nullptr && (*type == "gemma4" || *type == "gemma4_text")) {
    result = read_gemma4_config(config);
    if (const JsonValue* text = config.find("text_config")) {
      add_special_tokens(result.metadata, *text);
    }
    add_special_tokens(result.metadata, config);
  } else {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "model_type {} is not supported; expected a gemma4 target or a DFlash drafter",
            type != nullptr ? shown(*type) : "(none)"
        )
    );
  }
  result.metadata.set("general.type", std::string("model"));
  if (const JsonValue* quantization = config.find("quantization_config")) {
    add_quantization_config(result.metadata, *quantization);
  }
  return result;
}

void add_generation_config(Metadata& metadata, const JsonValue& generation) {
  add_special_tokens(metadata, generation);
  if (const std::optional<int64_t> top_k = generation.find_integer("top_k")) {
    metadata.set("general.sampling.top_k", *top_k);
  }
  if (const std::optional<double> top_p = generation.find_number("top_p")) {
    metadata.set("general.sampling.top_p", static_cast<float>(*top_p));
  }
  if (const std::optional<double> min_p = generation.find_number("min_p")) {
    metadata.set("general.sampling.min_p", static_cast<float>(*min_p));
  }
  if (const std::optional<double> penalty = generation.find_number("repetition_penalty")) {
    metadata.set("general.sampling.penalty_repeat", static_cast<float>(*penalty));
  }
  if (generation.find_boolean("do_sample") == false) {
    metadata.set("general.sampling.temp", 0.0F);  // greedy, whatever temperature stands beside it
  } else if (const std::optional<double> temperature = generation.find_number("temperature")) {
    metadata.set("general.sampling.temp", static_cast<float>(*temperature));
  }
}

void add_quantization_config(Metadata& metadata, const JsonValue& quantization) {
  const JsonValue* nested = quantization.find("quantization");
  const JsonValue& config = nested != nullptr ? *nested : quantization;
  const std::string* method = config.find_string("quant_method");
  if (method != nullptr && *method != "modelopt" && *method != "compressed-tensors") {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "quantisation method {} is not supported; expected 'modelopt' or 'compressed-tensors'",
            shown(*method)
        )
    );
  }
  const std::string* algorithm = config.find_string("quant_algo");
  if (algorithm != nullptr && !is_supported_algorithm(*algorithm)) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "quantisation algorithm {} is not supported; expected 'NVFP4' or 'W4A16_NVFP4'",
            shown(*algorithm)
        )
    );
  }
  const std::optional<int64_t> group = config.find_integer("group_size");
  if (group && *group != 16) {
    throw Error(
        ErrorKind::kUnsupported, fmt::format("'group_size' is {}; NVFP4 has groups of 16", *group)
    );
  }
  if (algorithm != nullptr) {
    metadata.set("general.quant_algo", *algorithm);
  }
}

}  // namespace octet
