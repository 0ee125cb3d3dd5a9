// What a client is told when a request cannot be served, with the offending field in `param`, in
// the form of the API that it speaks. Not for bugs of octet. Invariant: the body is always
// {"error":{"message","type","param","code"}}; on the routes of messages
// {"type":"error","error":{"type","message","param"}}.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "octet/base/error.h"
#include "octet/serve/http_server.h"

namespace octet::serve {

enum class ErrorForm : uint8_t { kOpenAI, kAnthropic };

/// Of a route.
ErrorForm error_form_of(std::string_view path);

class ApiError : public std::exception {
 public:
  /// 400, about one field ("messages[2].content"); param may be empty.
  ApiError(std::string param, std::string message)
      : message_(std::move(message)), param_(std::move(param)) {}
  ApiError(int status, std::string type, std::string message)
      : status_(status), type_(std::move(type)), message_(std::move(message)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }
  const std::string& type() const { return type_; }
  const std::string& param() const { return param_; }

  ApiError& with_code(std::string code) {
    code_ = std::move(code);
    return *this;
  }
  const std::string& code() const { return code_; }
  /// For a field that the client knows under another name: in `param`, and where the sentence
  /// begins with it.
  void rename(std::string_view field, std::string_view own) {
    param_.replace(0, field.size(), own);
    if (message_.starts_with(field)) {
      message_.replace(0, field.size(), own);
    }
  }

  /// JSON text of the error object's wrapper, as it also goes into a stream.
  std::string body(ErrorForm form) const;
  /// 429 and 503 carry Retry-After.
  HttpReply reply(ErrorForm form) const;

 private:
  int status_ = 400;
  std::string type_ = "invalid_request_error";
  std::string message_;
  std::string param_;
  std::string code_;
};

/// An error of the engine or the text modules, as the client's: which field it names, when its
/// sentence begins with one.
ApiError api_error_of(const Error& error);

/// What nobody expected: 503 when memory ran out, otherwise 500, a bug of octet.
ApiError internal_error(const std::exception& error);

}  // namespace octet::serve
