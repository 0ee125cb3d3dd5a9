#include "octet/serve/request_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/serve/api_error.h"

namespace octet::serve {
namespace {

/// Known elsewhere, honoured nowhere here: better an error than an answer to another question.
constexpr auto kRefused = std::to_array<std::string_view>({
    "adaptive_target",
    "allowed_token_ids",
    "audio",
    "bad_words",
    "beam_width",
    "chat_template",
    "documents",
    "dry_allowed_length",
    "dry_base",
    "dry_multiplier",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "dynatemp_exponent",
    "dynatemp_range",
    "function_call",
    "functions",
    "grammar_lazy",
    "grammar_triggers",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "id_slot",
    "length_penalty",
    "logits_processors",
    "min_keep",
    "lora",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "n_keep",
    "prediction",
    "prompt_logprobs",
    "samplers",
    "skip_special_tokens",
    "t_max_predict_ms",
    "tfs_z",
    "top_a",
    "top_n_sigma",
    "truncate_prompt_tokens",
    "typical_p",
    "use_beam_search",
    "verbosity",
    "web_search_options",
    "xtc_probability",
    "xtc_threshold",
    "include_stop_str_in_output",
});

[[noreturn]] void refuse(const std::string& field, std::string_view expected, const Json& found) {
  throw ApiError(
      field, fmt::format("{} is of type {}, expected {}", field, found.type_name(), expected)
  );
}

}  // namespace

std::span<const std::string_view> refused_fields() {
  return kRefused;
}

Json parse_body(const std::string& body, const JsonBounds& bounds) {
  if (const auto fault = json_fault(body, bounds)) {
    throw ApiError("", "the body " + fault->what);
  }
  Json json = Json::parse(body);
  if (!json.is_object()) {
    throw ApiError("", "the body is not a JSON object");
  }
  return json;
}

RequestFields::RequestFields(const Json& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const Json* RequestFields::find(std::string_view name) {
  read_.emplace(name);
  const auto place = object_.find(name);
  return place == object_.end() || place->is_null() ? nullptr : &*place;
}

std::optional<bool> RequestFields::boolean(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    refuse(name_of(name), "a boolean", *value);
  }
  return value->get<bool>();
}

std::optional<int64_t> RequestFields::integer(std::string_view name, int64_t least, int64_t most) {
  const Json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  const bool whole =
      value->is_number_integer() ||
      (value->is_number_float() && std::floor(value->get<double>()) == value->get<double>() &&
       std::abs(value->get<double>()) < 9e15);
  if (!whole) {
    refuse(name_of(name), "an integer", *value);
  }
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = too_large ? INT64_MAX : value->get<int64_t>();
  if (number < least || number > most || too_large) {
    throw ApiError(
        name_of(name),
        fmt::format("{} is {}, expected {} to {}", name_of(name), value->dump(), least, most)
    );
  }
  return number;
}

std::optional<double> RequestFields::number(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    refuse(name_of(name), "a number", *value);
  }
  const auto number = value->get<double>();
  if (!std::isfinite(number)) {
    throw ApiError(name_of(name), fmt::format("{} is not finite", name_of(name)));
  }
  return number;
}

std::optional<std::string> RequestFields::text(std::string_view name, size_t most_bytes) {
  const Json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    refuse(name_of(name), "a string", *value);
  }
  auto text = value->get<std::string>();
  if (text.size() > most_bytes) {
    throw ApiError(
        name_of(name),
        fmt::format("{} has {} bytes, expected at most {}", name_of(name), text.size(), most_bytes)
    );
  }
  return text;
}

std::optional<std::vector<std::string>> RequestFields::texts(std::string_view name, size_t most) {
  const Json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->is_string()) {
    return std::vector<std::string>{value->get<std::string>()};
  }
  const bool strings = value->is_array() && std::ranges::all_of(*value, [](const Json& entry) {
                         return entry.is_string();
                       });
  if (!strings) {
    refuse(name_of(name), "a string or an array of strings", *value);
  }
  if (value->size() > most) {
    throw ApiError(
        name_of(name),
        fmt::format("{} has {} entries, expected at most {}", name_of(name), value->size(), most)
    );
  }
  return value->get<std::vector<std::string>>();
}

void RequestFields::refuse_unread(bool strict) const {
  for (const auto& [name, value] : object_.items()) {
    if (read_.contains(name) || value.is_null()) {
      continue;
    }
    if (std::ranges::find(kRefused, name) != kRefused.end()) {
      throw ApiError(
          name_of(name),
          fmt::format("{} is not supported here and would change the output", name_of(name))
      )
          .with_code("unsupported_field");
    }
    if (strict || !path_.empty()) {
      throw ApiError(name_of(name), fmt::format("{} is not a field of this request", name_of(name)))
          .with_code("unknown_field");
    }
  }
}

}  // namespace octet::serve
