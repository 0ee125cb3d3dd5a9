// Reads tokenizer.json and generation_config.json of a Hugging Face directory into a
// TokenizerSource. Not for building the tokenizer. Invariant: the source borrows its strings from
// this object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "octet/text/tokenizer.h"

namespace octet {

class TokenizerJson {
 public:
  /// Throws Error: kMalformed for JSON that is broken or of another shape, naming the member;
  /// kUnsupported for a tokenizer that is not BPE with byte fallback.
  explicit TokenizerJson(std::string_view json);
  ~TokenizerJson();
  TokenizerJson(const TokenizerJson&) = delete;
  TokenizerJson& operator=(const TokenizerJson&) = delete;

  /// Adds eos_token_id (one or a list) and suppress_tokens of a generation_config.json. Throws
  /// Error(kMalformed).
  void add_generation_config(std::string_view json);

  void add_stop_ids(std::span<const int64_t> ids);

  const TokenizerSource& source() const { return source_; }

 private:
  struct Document;

  std::unique_ptr<Document> document_;
  TokenizerSource source_;
};

}  // namespace octet
