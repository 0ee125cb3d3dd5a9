// A stored draft head in memory, as `octet draft-head` would write it for a pair.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "octet/base/thread_pool.h"
#include "octet/models/dflash/draft_head.h"

namespace octet::test {

inline std::shared_ptr<Checkpoint> stored_head(
    const LogicalTensor& whole, const std::vector<TokenId>& tokens, DType dtype
) {
  ThreadPool pool(1);
  auto bytes =
      std::make_shared<std::vector<std::byte>>(encode_draft_head(whole, tokens, dtype, pool));
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->path = "stored-head";
  checkpoint->metadata.set("general.architecture", std::string(kDraftHeadArchitecture));
  checkpoint->metadata.set(
      std::string(kDraftHeadVocabularyKey), static_cast<uint32_t>(whole.rows())
  );
  if (!tokens.empty()) {
    checkpoint->metadata.set(
        std::string(kDraftHeadTokensKey),
        MetadataArray(std::vector<uint32_t>(tokens.begin(), tokens.end()))
    );
  }
  LogicalTensor tensor;
  tensor.name = std::string(kDraftHeadTensor);
  tensor.dtype = dtype;
  tensor.shape = {tokens.empty() ? whole.rows() : std::ssize(tokens), whole.cols()};
  tensor.data = *bytes;
  checkpoint->storage.push_back(std::move(bytes));
  checkpoint->add(std::move(tensor));
  return checkpoint;
}

}  // namespace octet::test
