// The message of the Error that an expression throws, for tests that check what a user reads.
#pragma once

#include <string>

#include "octet/base/error.h"

namespace octet::test {

/// "" when nothing is thrown; other exceptions pass through and fail the test.
template <typename Body>
std::string error_message(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace octet::test
