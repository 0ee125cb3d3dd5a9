#include "octet/serve/api_error.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <nlohmann/json.hpp>

namespace octet::serve {
namespace {

/// Sentences of the modules below begin with the field that they are about, in these spellings.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kFields = {{
    {"temperature ", "temperature"},
    {"top_k ", "top_k"},
    {"top_p ", "top_p"},
    {"min_p ", "min_p"},
    {"repetition_penalty ", "repetition_penalty"},
    {"presence_penalty ", "presence_penalty"},
    {"frequency_penalty ", "frequency_penalty"},
    {"penalty_last_n ", "penalty_last_n"},
    {"logit_bias ", "logit_bias"},
    {"max_tokens ", "max_tokens"},
    {"the prompt ", "messages"},
    {"message ", "messages"},
    {"a stop string", "stop"},
}};

}  // namespace

std::string ApiError::body() const {
  nlohmann::ordered_json error;
  error["message"] = message_;
  error["type"] = type_;
  error["param"] = param_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(param_);
  error["code"] = code_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(code_);
  nlohmann::ordered_json body;
  body["error"] = std::move(error);
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

HttpReply ApiError::reply() const {
  HttpReply reply;
  reply.status = status_;
  reply.body = body();
  if (status_ == 429 || status_ == 503) {
    reply.headers.emplace_back("Retry-After", "1");
  }
  if (status_ == 401) {
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  return reply;
}

ApiError api_error_of(const Error& error) {
  const std::string_view sentence = error.what();
  const auto field = std::ranges::find_if(kFields, [&](const auto& entry) {
    return sentence.starts_with(entry.first);
  });
  ApiError api(
      field == kFields.end() ? std::string() : std::string(field->second), std::string(sentence)
  );
  if (sentence.starts_with("the prompt has ")) {
    api.with_code("context_length_exceeded");
  } else {
    api.with_code(std::string(error_kind_name(error.kind())));
  }
  return api;
}

}  // namespace octet::serve
