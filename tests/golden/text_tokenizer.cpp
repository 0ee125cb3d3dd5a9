// The tokenizer against ids that other programs computed: 49 strings with the small vocabulary, 295
// with the real one.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/formats/gguf_reader.h"
#include "octet/formats/open_checkpoint.h"
#include "support/missing.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_fixtures.h"
#include "support/write_checkpoint.h"

namespace octet {
namespace {

using test::ids_of;

TEST(TokenizerGolden, TinyVectors) {
  const auto tokenizer = test::tiny_tokenizer();
  const test::JsonLines vectors(test::kTextGolden + "tiny_vectors.jsonl");
  ASSERT_EQ(vectors.rows.size(), 49U);
  int differs_by_design = 0;
  for (const auto row : vectors.rows) {
    const std::string_view text = row["text"];
    EXPECT_EQ(tokenizer->encode(text, SpecialTokens::kParse), ids_of(row["ids_special"])) << text;
    const std::vector<TokenId> plain = tokenizer->encode(text, SpecialTokens::kPlain);
    const std::vector<TokenId> reference = ids_of(row["ids_plain"]);
    // The program that made these lists takes some control tokens out of plain text too, those that
    // are typed "user defined": here plain text never becomes a control token.
    const bool has_control = std::any_of(reference.begin(), reference.end(), [&](TokenId id) {
      return tokenizer->is_control(id);
    });
    if (has_control) {
      ++differs_by_design;
      EXPECT_TRUE(std::none_of(plain.begin(), plain.end(), [&](TokenId id) {
        return tokenizer->is_control(id);
      }));
    } else {
      EXPECT_EQ(plain, reference) << text;
    }
  }
  EXPECT_EQ(differs_by_design, 2);
}

TEST(TokenizerGolden, Gemma4Vectors) {
  const auto tokenizer = test::gemma4_tokenizer();
  if (!tokenizer) {
    OCTET_NEEDS("the real vocabulary, " << test::kGemma3Json);
  }
  EXPECT_EQ(tokenizer->vocabulary_size(), 262144);
  const test::JsonLines vectors(test::kTextGolden + "gemma4_token_vectors.jsonl");
  ASSERT_EQ(vectors.rows.size(), 295U);
  for (const auto row : vectors.rows) {
    const std::string_view text = row["text"];
    EXPECT_EQ(tokenizer->encode(text, SpecialTokens::kParse), ids_of(row["ids"])) << text;
  }
}

/// The same vocabulary in the keys that a converter writes, through a file.
TEST(TokenizerGolden, Gemma4VectorsFromGguf) {
  const std::string json = test::read_text(test::kGemma3Json);
  if (json.empty()) {
    OCTET_NEEDS("the real vocabulary, " << test::kGemma3Json);
  }
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("vocabulary.gguf");
  test::with_gemma4_source(json, [&](const TokenizerSource& source) {
    std::vector<std::string> merges;
    for (const MergeText& merge : source.merges) {
      merges.push_back(std::string(merge.left) + " " + std::string(merge.right));
    }
    std::vector<int32_t> types(source.pieces.size(), 1);
    for (const auto& [id, text] : test::gemma4_control_ids()) {
      types[static_cast<size_t>(id)] = 3;
    }
    Metadata metadata;
    metadata.set("general.architecture", std::string("gemma4"));
    metadata.set("tokenizer.ggml.model", std::string("gemma4"));
    metadata.set("tokenizer.ggml.tokens", MetadataArray(source.pieces));
    metadata.set(
        "tokenizer.ggml.merges",
        MetadataArray(std::vector<std::string_view>(merges.begin(), merges.end()))
    );
    metadata.set("tokenizer.ggml.token_type", MetadataArray(types));
    test::write_gguf(path, metadata, {});
  });
  const GgufFile file = read_gguf(path);
  Checkpoint checkpoint;
  checkpoint.metadata = file.metadata;
  const auto tokenizer = load_tokenizer(checkpoint);
  EXPECT_EQ(tokenizer->vocabulary_size(), 262144);
  int compared = 0;
  for (const auto row : test::JsonLines(test::kTextGolden + "gemma4_token_vectors.jsonl").rows) {
    const std::string_view text = row["text"];
    EXPECT_EQ(tokenizer->encode(text, SpecialTokens::kParse), ids_of(row["ids"])) << text;
    ++compared;
  }
  EXPECT_EQ(compared, 295);
}

TEST(TokenizerGolden, Gemma4ControlTokens) {
  const auto tokenizer = test::gemma4_tokenizer();
  if (!tokenizer) {
    OCTET_NEEDS("the real vocabulary, " << test::kGemma3Json);
  }
  int controls = 0;
  for (TokenId id = 0; id < tokenizer->vocabulary_size(); ++id) {
    const bool expected = test::gemma4_control_ids().contains(id);
    EXPECT_EQ(tokenizer->is_control(id), expected) << id << " " << tokenizer->piece(id);
    controls += expected ? 1 : 0;
  }
  EXPECT_EQ(controls, 24);
  EXPECT_EQ(tokenizer->bos(), 2);
  const std::vector<TokenId> stops(tokenizer->stop_ids().begin(), tokenizer->stop_ids().end());
  EXPECT_EQ(stops, (std::vector<TokenId>{1, 50, 106}));
  EXPECT_EQ(tokenizer->piece(212), "</s>");
  EXPECT_FALSE(tokenizer->is_control(212));
  EXPECT_EQ(tokenizer->find("<unused6226>"), 262143);
}

std::shared_ptr<const Tokenizer> tokenizer_in(const std::string& path) {
  return load_tokenizer(*open_checkpoint(OCTET_SOURCE_DIR "/" + path));
}

TEST(TokenizerGolden, SameFromGgufAndFromTokenizerJson) {
  const auto from_gguf = tokenizer_in("tests/golden/tiny/tiny-bf16.gguf");
  const auto from_json = test::tiny_tokenizer();
  ASSERT_EQ(from_gguf->vocabulary_size(), from_json->vocabulary_size());
  for (TokenId id = 0; id < from_json->vocabulary_size(); ++id) {
    ASSERT_EQ(from_gguf->piece(id), from_json->piece(id));
    ASSERT_EQ(from_gguf->is_control(id), from_json->is_control(id)) << from_json->piece(id);
  }
  EXPECT_TRUE(std::ranges::equal(from_gguf->stop_ids(), from_json->stop_ids()));
  for (const auto row : test::JsonLines(test::kTextGolden + "gemma4_token_vectors.jsonl").rows) {
    const std::string_view text = row["text"];
    EXPECT_EQ(
        from_gguf->encode(text, SpecialTokens::kParse),
        from_json->encode(text, SpecialTokens::kParse)
    );
  }
}

// The trained pair numbers its control tokens differently from the real model.
TEST(TokenizerGolden, ControlTokensOfTheTrainedPair) {
  const auto tokenizer = tokenizer_in("models/bolt-tiny/bolt-tiny-q8_0.gguf");
  EXPECT_EQ(tokenizer->bos(), 2);
  EXPECT_TRUE(std::ranges::equal(tokenizer->stop_ids(), std::vector<TokenId>{1, 6, 14}));
  EXPECT_EQ(tokenizer->chat_tokens().turn_open, 5);
  EXPECT_EQ(tokenizer->chat_tokens().think, 7);
  EXPECT_EQ(tokenizer->chat_tokens().channel_close, 9);
}

TEST(TokenizerGolden, PromptsOfTheTrainedPair) {
  const auto tokenizer = tokenizer_in("models/bolt-tiny/bolt-tiny-q8_0.gguf");
  const test::JsonLines prompts(OCTET_SOURCE_DIR "/tests/golden/engine/continuations.jsonl");
  ASSERT_EQ(prompts.rows.size(), 60U);
  for (const auto row : prompts.rows) {
    const std::string_view prompt = row["prompt"];
    EXPECT_EQ(
        tokenizer->with_bos(tokenizer->encode(prompt, SpecialTokens::kParse)),
        ids_of(row["prompt_ids"])
    ) << prompt;
  }
}

}  // namespace
}  // namespace octet
