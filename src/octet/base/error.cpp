#include "octet/base/error.h"

#include <utility>

namespace octet {

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kMalformed:
      return "malformed";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kMismatch:
      return "mismatch";
    case ErrorKind::kInvalidArgument:
      return "invalid_argument";
    case ErrorKind::kResourceExhausted:
      return "resource_exhausted";
    case ErrorKind::kIo:
      return "io";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, std::string message) : kind_(kind), text_(std::move(message)) {}

Error& Error::add_context(std::string_view context) {
  text_.insert(0, ": ");
  text_.insert(0, context);
  return *this;
}

}  // namespace octet
