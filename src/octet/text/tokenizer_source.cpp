#include "octet/text/tokenizer_source.h"

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

MergeText split_merge(std::string_view merge, size_t rank) {
  const size_t space = merge.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == merge.size()) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "merge {} is \"{}\", expected two pieces with a space between them", rank, merge
        )
    );
  }
  return {merge.substr(0, space), merge.substr(space + 1)};
}

}  // namespace octet
