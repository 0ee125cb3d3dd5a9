#include "octet/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace octet {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(
      stderr,
      "octet: internal error: '%s' does not hold at %s:%d; please report this\n",
      condition,
      file,
      line
  );
  std::abort();
}

}  // namespace octet
