#include "octet/cli/text_files.h"

#include <string_view>

#include "octet/base/mapped_file.h"

namespace octet::cli {

std::vector<std::vector<TokenId>> read_texts(
    std::span<const std::string> files, const Tokenizer& tokenizer
) {
  std::vector<std::vector<TokenId>> texts;
  for (const std::string& path : files) {
    const auto file = MappedFile::open(path);
    const std::string_view text(
        reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()
    );
    texts.push_back(tokenizer.encode(text, SpecialTokens::kParse));
  }
  return texts;
}

}  // namespace octet::cli
