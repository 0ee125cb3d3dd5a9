// A synthetic vocabulary is a vocabulary: it loads as metadata and as tokenizer.json, and any text
// survives it.

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "octet/cli/synth/vocabulary.h"
#include "octet/tensor/checkpoint.h"
#include "octet/text/load_tokenizer.h"
#include "octet/text/tokenizer_metadata.h"

namespace octet::cli {
namespace {

class SynthVocabularySize : public testing::TestWithParam<int64_t> {};

TEST_P(SynthVocabularySize, EncodesAndDecodesAnyText) {
  const SynthVocabulary vocabulary = make_vocabulary(GetParam());
  ASSERT_EQ(static_cast<int64_t>(vocabulary.pieces.size()), GetParam());
  Checkpoint checkpoint;
  add_tokenizer(checkpoint.metadata, vocabulary);
  const auto tokenizer = load_tokenizer(checkpoint);
  const auto from_json = tokenizer_from_json(tokenizer_json_text(checkpoint.metadata));
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::string text = "word another\n\n  ";
    for (int i = static_cast<int>(random() % 60); i > 0; --i) {
      text += static_cast<char>(random() % 128);
    }
    const auto ids = tokenizer->encode(text, SpecialTokens::kPlain);
    EXPECT_EQ(tokenizer->decode(ids), text) << "round " << round;
    EXPECT_EQ(ids, from_json->encode(text, SpecialTokens::kPlain)) << "round " << round;
  }
  EXPECT_EQ(tokenizer->bos(), 2);
  EXPECT_NE(tokenizer->chat_tokens().turn_open, kNoToken);
  EXPECT_LT(
      tokenizer->encode("another word", SpecialTokens::kPlain).size(), 12U
  );  // merges are used
}

INSTANTIATE_TEST_SUITE_P(All, SynthVocabularySize, testing::Values(600, 1024, 4096, 262144));

}  // namespace
}  // namespace octet::cli
