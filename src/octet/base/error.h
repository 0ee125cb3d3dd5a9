// Errors that a user can cause or meet: bad files, bad flags, a wrong pair, no memory.
// Not for bugs of octet itself (those are OCTET_CHECK in check.h) and not for expected outcomes
// such as finish reasons (those are values). An Error is caught in two places only: cli/main and
// the request boundary of the server. The message is one sentence: what was wrong, where, and what
// was expected.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace octet {

enum class ErrorKind {
  kNotFound,
  kMalformed,
  kUnsupported,
  kMismatch,
  kInvalidArgument,
  kResourceExhausted,
  kIo,
};

/// Short stable name of a kind, e.g. "malformed"; used in machine-readable output.
std::string_view error_kind_name(ErrorKind kind);

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);

  ErrorKind kind() const { return kind_; }
  const char* what() const noexcept override { return text_.c_str(); }

  /// Prefixes "context: " as the error rises, outermost last: `catch (Error& e) {
  /// e.add_context(path); throw; }`.
  Error& add_context(std::string_view context);

 private:
  ErrorKind kind_;
  std::string text_;
};

}  // namespace octet
