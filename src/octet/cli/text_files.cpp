#include "octet/cli/text_files.h"

#include "octet/base/mapped_file.h"

namespace octet::cli {

std::vector<std::vector<TokenId>> read_texts(
    std::span<const std::string> files, const Tokenizer& tokenizer
) {
  std::vector<std::vector<TokenId>> texts;
  for (const std::string& path : files) {
    texts.push_back(tokenizer.encode(read_whole_file(path), SpecialTokens::kParse));
  }
  return texts;
}

}  // namespace octet::cli
