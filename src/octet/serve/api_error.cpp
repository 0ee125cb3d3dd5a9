#include "octet/serve/api_error.h"

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include <fmt/format.h>
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

/// That API has its own set.
std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

ErrorForm error_form_of(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorForm::kAnthropic : ErrorForm::kOpenAI;
}

std::string ApiError::body(ErrorForm form) const {
  nlohmann::ordered_json error;
  nlohmann::ordered_json body;
  if (form == ErrorForm::kAnthropic) {
    body["type"] = "error";
    error["type"] = anthropic_type(status_);
    error["message"] = message_;
    error["param"] = param_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(param_);
    body["error"] = std::move(error);
    return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  error["message"] = message_;
  error["type"] = type_;
  error["param"] = param_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(param_);
  error["code"] = code_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(code_);
  body["error"] = std::move(error);
  return body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

HttpReply ApiError::reply(ErrorForm form) const {
  HttpReply reply;
  reply.status = status_;
  reply.body = body(form);
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

ApiError internal_error(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {503, "server_error", "out of memory; send less"};
  }
  return {500, "server_error", fmt::format("this is a bug of octet: {}", error.what())};
}

}  // namespace octet::serve
