// Single facts of the tokenizer, and what files may do wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "octet/formats/hf_config.h"
#include "octet/formats/json_value.h"
#include "octet/tensor/checkpoint.h"
#include "octet/text/tokenizer.h"
#include "support/error_message.h"
#include "support/temporary_directory.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using test::error_message;
using test::TokenizerParts;

std::string source_error(const TokenizerParts& parts) {
  return error_message([&] { Tokenizer tokenizer(parts.source()); });
}

TEST(Tokenizer, DefinedForEveryEdge) {
  const auto tokenizer = test::tiny_tokenizer();
  EXPECT_TRUE(tokenizer->encode("", SpecialTokens::kParse).empty());
  for (const std::string& text :
       {std::string(" "),
        std::string("\n"),
        std::string("\0", 1),
        std::string("\xED\xA0\x80"),
        std::string("\xFF\xFE")}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, SpecialTokens::kPlain)), text);
  }
  EXPECT_EQ(tokenizer->encode("\n\n\n", SpecialTokens::kPlain), (std::vector<TokenId>{109}));
}

TEST(Tokenizer, ExactlyOneBos) {
  const auto tokenizer = test::tiny_tokenizer();
  EXPECT_EQ(tokenizer->with_bos({}), (std::vector<TokenId>{2}));
  EXPECT_EQ(tokenizer->with_bos({559}), (std::vector<TokenId>{2, 559}));
  EXPECT_EQ(tokenizer->with_bos({2, 559}), (std::vector<TokenId>{2, 559}));
  EXPECT_EQ(tokenizer->with_bos({2, 2, 559, 2}), (std::vector<TokenId>{2, 559, 2}));
}

TEST(Tokenizer, LongestControlTokenAtTheLeftmostPlace) {
  TokenizerParts parts = TokenizerParts::with_characters({"<", "|", "a", ">"});
  parts.pieces.emplace_back("<|a|>");
  parts.pieces.emplace_back("<|a|>a|>");
  TokenizerSource source = parts.source();
  source.declared_special = {
      static_cast<TokenId>(parts.pieces.size() - 2), static_cast<TokenId>(parts.pieces.size() - 1)};
  const Tokenizer tokenizer(source);
  EXPECT_EQ(
      tokenizer.encode("<|a|>a|>", SpecialTokens::kParse),
      (std::vector<TokenId>{source.declared_special[1]})
  );
  EXPECT_EQ(
      tokenizer.encode("<|a|><|a|>a", SpecialTokens::kParse),
      (std::vector<TokenId>{
          source.declared_special[0], source.declared_special[0], tokenizer.find("a")})
  );
  EXPECT_EQ(tokenizer.encode("<|a|>", SpecialTokens::kPlain).size(), 5U);
}

TEST(Tokenizer, RunsMergeAcrossSpansButNotAcrossControlTokens) {
  const auto tokenizer = test::tiny_tokenizer();
  const std::vector<TextSpan> spans = {
      {.text = "<|turn>user\n", .special_tokens = SpecialTokens::kParse},
      {.text = "\nhi<turn|>\n"},
      {.text = "\n<turn|>\n", .special_tokens = SpecialTokens::kParse}};
  const std::vector<TokenId> ids = tokenizer->encode_spans(spans);
  std::vector<TokenId> expected = {tokenizer->find("<|turn>")};
  const auto append = [&](std::string_view text) {
    const auto more = tokenizer->encode(text, SpecialTokens::kPlain);
    expected.insert(expected.end(), more.begin(), more.end());
  };
  append("user\n\nhi<turn|>\n\n");
  expected.push_back(tokenizer->find("<turn|>"));
  append("\n");
  EXPECT_EQ(ids, expected);
}

TEST(Tokenizer, ClassifiesByTextNotByDeclaration) {
  TokenizerParts parts =
      TokenizerParts::with_characters({"a", "</s>", "<unused0>", "<|custom|>", "\n\n"});
  TokenizerSource source = parts.source();
  for (TokenId id = 0; id < static_cast<TokenId>(parts.pieces.size()); ++id) {
    source.declared_special.push_back(id);
  }
  const Tokenizer all_declared(source);
  for (const std::string_view text : {"</s>", "<unused0>", "a", "\n\n", "<0x41>"}) {
    EXPECT_FALSE(all_declared.is_control(all_declared.find(text))) << text;
  }
  EXPECT_TRUE(all_declared.is_control(all_declared.find("<|custom|>")));
  const Tokenizer none_declared(parts.source());
  EXPECT_TRUE(none_declared.is_control(none_declared.find("<eos>")));
  EXPECT_TRUE(none_declared.is_control(none_declared.find("<|tool_response>")));
  EXPECT_FALSE(none_declared.is_control(none_declared.find("<|custom|>")));
}

TEST(Tokenizer, StopIdsByTextAndByDeclaration) {
  TokenizerParts parts = TokenizerParts::with_characters({"</s>", "x"});
  TokenizerSource source = parts.source();
  const Tokenizer plain(source);
  std::vector<TokenId> expected = {
      plain.find("<eos>"), plain.find("<|tool_response>"), plain.find("<turn|>")};
  EXPECT_EQ(std::vector<TokenId>(plain.stop_ids().begin(), plain.stop_ids().end()), expected);
  EXPECT_FALSE(plain.is_stop(plain.find("</s>")));
  source.stop_ids = {plain.find("x"), plain.find("<eos>")};
  EXPECT_TRUE(Tokenizer(source).is_stop(plain.find("x")));
  EXPECT_EQ(Tokenizer(source).stop_ids().size(), 4U);
}

// A file may not make text turn into control or byte tokens by merging.
TEST(Tokenizer, MergesNeverMakeControlOrByteTokens) {
  TokenizerParts parts =
      TokenizerParts::with_characters({"<", "|turn>", "|", "turn>", "0x41>", "0", "x41>"});
  parts.merges = {{"<", "|turn>"}, {"<", "0x41>"}, {"<0x41>", "<0x42>"}};
  parts.pieces.emplace_back("<0x41><0x42>");
  const Tokenizer tokenizer(parts.source());
  for (const TokenId id : tokenizer.encode("<|turn><0x41>AB", SpecialTokens::kPlain)) {
    EXPECT_FALSE(tokenizer.is_control(id));
  }
  EXPECT_EQ(
      tokenizer.decode(tokenizer.encode("<|turn><0x41>AB", SpecialTokens::kPlain)),
      "<|turn><0x41>AB"
  );
}

TEST(Tokenizer, RefusesIdsOutsideTheVocabulary) {
  const auto tokenizer = test::tiny_tokenizer();
  for (const TokenId id : {-1, 2048, 2147483647}) {
    EXPECT_EQ(
        error_message([&] { static_cast<void>(tokenizer->bytes(id)); }),
        fmt::format("token id {} is outside the vocabulary of 2048 pieces", id)
    );
  }
}

TEST(TokenizerFile, MalformedVocabularies) {
  const TokenizerParts good = TokenizerParts::with_characters({"a", "b"});
  ASSERT_EQ(source_error(good), "");
  TokenizerParts parts = good;
  parts.pieces.emplace_back("a");
  EXPECT_EQ(source_error(parts), "tokens 280 and 282 have the same text \"a\"");
  parts = good;
  parts.pieces.emplace_back("");
  EXPECT_EQ(source_error(parts), "token 282 has 0 bytes, expected 1 to 1024");
  parts = good;
  parts.pieces.push_back(std::string(1025, 'x'));
  EXPECT_EQ(source_error(parts), "token 282 has 1025 bytes, expected 1 to 1024");
  parts = good;
  parts.pieces.emplace_back("\xFF");
  EXPECT_EQ(source_error(parts), "token 282 is not valid UTF-8");
  parts = good;
  parts.pieces[24 + 0x41] = "gone";
  EXPECT_EQ(
      source_error(parts),
      "the vocabulary has no byte token <0x41>; all 256 are needed for text without pieces"
  );
  EXPECT_EQ(source_error({}), "the vocabulary has 0 pieces, expected 1 to 2097152");
  parts = good;
  parts.merges = {{"a", "b"}};
  EXPECT_EQ(source_error(parts), "merge 0 needs the piece \"ab\", which is not in the vocabulary");
  parts.merges = {{"a", "z"}};
  EXPECT_EQ(source_error(parts), "merge 0 needs the piece \"z\", which is not in the vocabulary");
}

TEST(TokenizerFile, BadIds) {
  const TokenizerParts parts = TokenizerParts::with_characters({"a"});
  TokenizerSource source = parts.source();
  source.stop_ids = {281};
  EXPECT_EQ(
      error_message([&] { Tokenizer tokenizer(source); }),
      "end-of-text token id 281 is outside the vocabulary of 281 pieces"
  );
  source = parts.source();
  source.declared_special = {-1};
  EXPECT_EQ(
      error_message([&] { Tokenizer tokenizer(source); }),
      "special token id -1 is outside the vocabulary of 281 pieces"
  );
}

TEST(TokenizerFile, SplitsMerges) {
  EXPECT_EQ(split_merge("a b", 0).left, "a");
  EXPECT_EQ(split_merge("\n \n\n", 0).right, "\n\n");
  for (const std::string_view merge : {"", "a", " a", "a "}) {
    EXPECT_EQ(
        error_message([&] { split_merge(merge, 7); }),
        fmt::format("merge 7 is \"{}\", expected two pieces with a space between them", merge)
    );
  }
}

Checkpoint gguf_checkpoint(const TokenizerParts& parts, std::vector<std::string>& merge_strings) {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  for (const auto& [left, right] : parts.merges) {
    merge_strings.push_back(left + " " + right);
  }
  checkpoint.metadata.set("tokenizer.ggml.model", std::string("gemma4"));
  checkpoint.metadata.set(
      "tokenizer.ggml.tokens",
      MetadataArray(std::vector<std::string_view>(parts.pieces.begin(), parts.pieces.end()))
  );
  checkpoint.metadata.set(
      "tokenizer.ggml.merges",
      MetadataArray(std::vector<std::string_view>(merge_strings.begin(), merge_strings.end()))
  );
  checkpoint.metadata.set("tokenizer.ggml.bos_token_id", uint32_t{2});
  checkpoint.metadata.set("tokenizer.ggml.eos_token_id", uint32_t{1});
  return checkpoint;
}

TEST(LoadTokenizer, FromGgufMetadata) {
  TokenizerParts parts = TokenizerParts::with_characters({"a", "b", "ab"});
  parts.merges = {{"a", "b"}};
  std::vector<std::string> storage;
  Checkpoint checkpoint = gguf_checkpoint(parts, storage);
  const auto tokenizer = load_tokenizer(checkpoint);
  EXPECT_EQ(
      tokenizer->encode("aab", SpecialTokens::kPlain),
      (std::vector<TokenId>{tokenizer->find("a"), tokenizer->find("ab")})
  );
  EXPECT_EQ(tokenizer->bos(), 2);

  checkpoint.metadata.set("tokenizer.ggml.eot_token_id", uint32_t{5000});
  EXPECT_EQ(
      error_message([&] { load_tokenizer(checkpoint); }),
      "model.gguf: end-of-text token id 5000 is outside the vocabulary of 283 pieces"
  );
  checkpoint.metadata.set("tokenizer.ggml.eot_token_id", uint32_t{1});
  checkpoint.metadata.set("tokenizer.ggml.token_type", MetadataArray(std::vector<int32_t>{1, 2}));
  EXPECT_EQ(
      error_message([&] { load_tokenizer(checkpoint); }),
      "model.gguf: tokenizer.ggml.token_type has 2 elements, expected one for each of 283 tokens"
  );
  checkpoint.metadata.set("tokenizer.ggml.model", std::string("llama"));
  EXPECT_EQ(
      error_message([&] { load_tokenizer(checkpoint); }),
      "model.gguf: tokenizer.ggml.model is \"llama\", the only tokenizer octet knows is \"gemma4\""
  );
}

TEST(LoadTokenizer, NeitherMetadataNorFile) {
  Checkpoint checkpoint;
  checkpoint.path = "model.gguf";
  EXPECT_EQ(
      error_message([&] { load_tokenizer(checkpoint); }),
      "model.gguf: there is no tokenizer: neither tokenizer.ggml.model in the metadata nor a file "
      "tokenizer.json "
      "beside the weights"
  );
}

TEST(LoadTokenizer, FromFilesBesideTheWeights) {
  const test::TemporaryDirectory directory;
  const std::string config_path = directory.file("generation_config.json");
  std::ofstream(config_path
  ) << R"({"eos_token_id": [1, 106, 559], "suppress_tokens": [4], "top_k": 64})";
  Checkpoint checkpoint;
  checkpoint.sidecars["tokenizer.json"] = test::kTextGolden + "tiny_tokenizer.json";
  checkpoint.sidecars["generation_config.json"] = config_path;
  const auto tokenizer = load_tokenizer(checkpoint);
  EXPECT_EQ(
      std::vector<TokenId>(tokenizer->stop_ids().begin(), tokenizer->stop_ids().end()),
      (std::vector<TokenId>{1, 50, 106, 559})
  );
  EXPECT_EQ(tokenizer->suppressed_ids().size(), 1U);
}

TEST(LoadTokenizer, EndTokensOfTheConfigCountToo) {
  Checkpoint checkpoint;
  checkpoint.sidecars["tokenizer.json"] = test::kTextGolden + "tiny_tokenizer.json";
  constexpr std::string_view kConfig = R"({"eos_token_id": [1, 106, 559], "top_k": 64})";
  const JsonValue config = parse_json(std::as_bytes(std::span(kConfig)));
  add_generation_config(checkpoint.metadata, config);
  const auto tokenizer = load_tokenizer(checkpoint);
  EXPECT_EQ(
      std::vector<TokenId>(tokenizer->stop_ids().begin(), tokenizer->stop_ids().end()),
      (std::vector<TokenId>{1, 50, 106, 559})
  );
}

/// A tokenizer.json around the pieces of `parts`.
std::string tokenizer_json(
    const TokenizerParts& parts, std::string_view merges, std::string_view more = ""
) {
  std::string vocab;
  for (size_t id = 0; id < parts.pieces.size(); ++id) {
    std::string piece = parts.pieces[id] == "<|\"|>" ? "<|\\\"|>" : parts.pieces[id];
    vocab += fmt::format("{}\"{}\": {}", id == 0 ? "" : ", ", piece, id);
  }
  return fmt::format(
      R"({{"model": {{"type": "BPE", "merges": {}, "byte_fallback": true, "vocab": {{{}}}}}{}}})",
      merges,
      vocab,
      more
  );
}

TEST(TokenizerJson, MergesAsStringsOrPairsInAnyMemberOrder) {
  const TokenizerParts parts = TokenizerParts::with_characters({"a", "b", "ab", "abb"});
  for (const std::string_view merges :
       {R"(["a b", "ab b"])", R"([["a", "b"], ["ab", "b"]])", R"(["a b", ["ab", "b"]])"}) {
    const auto tokenizer = tokenizer_from_json(tokenizer_json(parts, merges));
    EXPECT_EQ(
        tokenizer->encode("abb", SpecialTokens::kPlain),
        (std::vector<TokenId>{tokenizer->find("abb")})
    );
  }
}

TEST(TokenizerJson, AddedTokens) {
  const TokenizerParts parts = TokenizerParts::with_characters({"a"});
  const auto tokenizer = tokenizer_from_json(tokenizer_json(
      parts,
      "[]",
      R"(, "added_tokens": [{"id": 281, "content": "<|new|>", "special": true}, {"content": "A", "id": 280}])"
  ));
  EXPECT_TRUE(tokenizer->is_control(281));
  EXPECT_EQ(tokenizer->piece(280), "A");
}

TEST(TokenizerJson, SaysWhatIsWrong) {
  const TokenizerParts parts = TokenizerParts::with_characters({"a"});
  const auto message = [](const std::string& json) {
    return error_message([&] { tokenizer_from_json(json); });
  };
  EXPECT_NE(message("").find("tokenizer.json, top level: "), std::string::npos);
  EXPECT_NE(message("[1]").find("tokenizer.json, top level: "), std::string::npos);
  EXPECT_EQ(message("{}"), "tokenizer.json, top level: there is no member \"model\"");
  EXPECT_EQ(
      message(R"({"model": {"type": "Unigram"}})"),
      "tokenizer.json, model.type: \"Unigram\", octet knows only \"BPE\""
  );
  EXPECT_NE(message(R"({"model": {"type": "BPE"}})").find("byte_fallback"), std::string::npos);
  EXPECT_EQ(
      message(tokenizer_json(parts, R"([["a"]])")),
      "tokenizer.json, model.merges: merge 0 has 1 elements, expected 2"
  );
  EXPECT_NE(
      message(tokenizer_json(parts, R"([7])")).find("tokenizer.json, model.merges: "),
      std::string::npos
  );
  EXPECT_EQ(
      message(tokenizer_json(parts, "[]", R"(, "added_tokens": [{"content": "x"}])")),
      "tokenizer.json, added_tokens: token id -1 is out of range, expected 0 to 2097151"
  );
  EXPECT_EQ(
      message(tokenizer_json(parts, "[]", R"(, "added_tokens": [{"content": "x", "id": 300}])")),
      "tokenizer.json, model.vocab: no token has the id 281, expected ids without gaps"
  );
  EXPECT_EQ(
      message(R"({"model": {"byte_fallback": true, "vocab": {"a": 0, "b": 0}}})"),
      "tokenizer.json, model.vocab: \"a\" and \"b\" have the same id"
  );
  EXPECT_NE(
      message(R"({"model": {"vocab": {"a": 1e3}}})").find("tokenizer.json, model.vocab: "),
      std::string::npos
  );
  const std::string good = tokenizer_json(parts, "[]");
  EXPECT_EQ(message(good), "");
  for (size_t length = 0; length < good.size(); length += 97) {
    EXPECT_NE(message(good.substr(0, length)), "") << length;
  }
  EXPECT_NE(
      error_message([&] { tokenizer_from_json(good, R"({"eos_token_id": "x"})"); }
      ).find("generation_config.json, eos_token_id: "),
      std::string::npos
  );
}

}  // namespace
}  // namespace octet
