// Laws of masks: what a mask allows is what may follow, every walk inside masks ends in a valid
// text, rolling back forgets, and no valid text is forbidden, however it is cut into tokens.
#include <cmath>
#include <random>
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/grammar/grammar.h"
#include "octet/grammar/matcher.h"
#include "support/byte_tokens.h"
#include "support/schema_instances.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;
using Random = std::mt19937_64;

GrammarCompiler& compiler() {
  static GrammarCompiler shared(test::tiny_tokenizer());
  return shared;
}

std::vector<TokenId> allowed(const Matcher& matcher) {
  const auto size = static_cast<size_t>(test::tiny_tokenizer()->vocabulary_size());
  std::vector<uint64_t> words((size + 63) / 64);
  matcher.fill_mask(words);
  std::vector<TokenId> out;
  for (size_t token = 0; token < size; ++token) {
    if (((words[token / 64] >> (token % 64)) & 1U) != 0) {
      out.push_back(static_cast<TokenId>(token));
    }
  }
  return out;
}

/// A walk by random allowed tokens; after `eager` of them it ends where it may, and prefers tokens
/// that end things.
std::vector<TokenId> walk(Matcher& matcher, Random& random, int eager) {
  const auto tokenizer = test::tiny_tokenizer();
  std::vector<TokenId> out;
  for (int i = 0; i < 4000; ++i) {
    if (i >= eager && matcher.can_end()) {
      return out;
    }
    std::vector<TokenId> tokens = allowed(matcher);
    std::erase_if(tokens, [&](TokenId token) { return tokenizer->is_stop(token); });
    if (tokens.empty()) {
      EXPECT_TRUE(matcher.can_end());
      return out;
    }
    TokenId token = tokens[random() % tokens.size()];
    if (i >= eager) {
      for (const char* closing : {"<channel|>", "\"", "}", "]"}) {
        const TokenId end = tokenizer->find(closing);
        if (std::find(tokens.begin(), tokens.end(), end) != tokens.end()) {
          token = end;
          break;
        }
      }
    }
    EXPECT_TRUE(matcher.accept(token));
    out.push_back(token);
  }
  ADD_FAILURE() << "the walk does not end: " << tokenizer->decode(out).substr(0, 300);
  return out;
}

const std::vector<const char*> kExpressions = {
    "[a-c]+(x|yy)?\\d{2,3}",
    "(foo|bar)*baz",
    "[^\\d\\s]{1,5}",
    "a{0,4}b{2}",
    "\\w+@\\w+\\.(com|org)",
    "(a|b|c|)(d|e)?",
    "\\$[0-9]+\\.[0-9]{2}",
    "[\\]\\-x]{3}",
    "(ab?){2,4}"};

TEST(GrammarLaws, WalksMatchTheExpression) {
  const auto seed = std::random_device{}();
  Random random(seed);
  for (const char* expression : kExpressions) {
    const std::regex reference(expression);
    for (int i = 0; i < 12; ++i) {
      Matcher matcher(compiler().regex(expression, ThoughtStart::kNone));
      const std::string text = test::tiny_tokenizer()->decode(walk(matcher, random, 6));
      // std::regex has no Unicode: the walks of negated sets are only checked where they are ASCII.
      const bool ascii = std::all_of(text.begin(), text.end(), [](char c) {
        return c > 0 && static_cast<unsigned char>(c) < 0x80;
      });
      EXPECT_TRUE(!ascii || std::regex_match(text, reference))
          << expression << " " << text << " seed " << seed;
    }
  }
}

TEST(GrammarLaws, MaskIsWhatAcceptTakes) {
  const auto seed = std::random_device{}();
  Random random(seed);
  const auto tokenizer = test::tiny_tokenizer();
  for (int round = 0; round < 6; ++round) {
    const Json schema = test::random_schema(random, 2);
    const ThoughtStart thought = round % 2 == 0 ? ThoughtStart::kNone : ThoughtStart::kMayOpen;
    Matcher matcher(compiler().json_schema(schema, thought));
    walk(matcher, random, static_cast<int>(random() % 12));
    while (true) {
      const std::vector<TokenId> tokens = allowed(matcher);
      size_t next = 0;
      for (TokenId token = 0; token < tokenizer->vocabulary_size(); ++token) {
        const bool in_mask = next < tokens.size() && tokens[next] == token;
        next += in_mask ? 1 : 0;
        ASSERT_EQ(matcher.allows(token), in_mask)
            << schema << " token " << token << " seed " << seed;
      }
      std::vector<float> logits(static_cast<size_t>(tokenizer->vocabulary_size()), 1.0F);
      matcher.apply(logits);
      ASSERT_EQ(
          std::count(logits.begin(), logits.end(), 1.0F), static_cast<std::ptrdiff_t>(tokens.size())
      );
      if (matcher.length() == 0) {
        break;
      }
      matcher.rollback(std::min<int64_t>(matcher.length(), 1 + static_cast<int64_t>(random() % 3)));
    }
  }
}

TEST(GrammarLaws, RollbackForgets) {
  const auto seed = std::random_device{}();
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto grammar =
        compiler().json_schema(test::random_schema(random, 3), ThoughtStart::kMayOpen);
    Matcher matcher(grammar);
    const std::vector<TokenId> tokens = walk(matcher, random, static_cast<int>(random() % 20));
    const auto keep = static_cast<size_t>(random() % (tokens.size() + 1));
    matcher.rollback(static_cast<int64_t>(tokens.size() - keep));
    Matcher fresh(grammar);
    for (size_t i = 0; i < keep; ++i) {
      ASSERT_TRUE(fresh.accept(tokens[i]));
    }
    ASSERT_EQ(allowed(matcher), allowed(fresh)) << "seed " << seed;
    ASSERT_EQ(matcher.can_end(), fresh.can_end());
    ASSERT_EQ(matcher.forced_tokens(8), fresh.forced_tokens(8));
  }
}

/// Pieces of random length that the vocabulary has, else bytes.
std::vector<TokenId> random_cut(std::string_view text, Random& random) {
  const auto tokenizer = test::tiny_tokenizer();
  std::vector<TokenId> out;
  while (!text.empty()) {
    size_t size = std::min<size_t>(text.size(), 1 + random() % 6);
    TokenId token = kNoToken;
    for (; size > 0 && token == kNoToken; --size) {
      std::string piece(text.substr(0, size));
      for (size_t at = piece.find(' '); at != std::string::npos; at = piece.find(' ')) {
        piece.replace(at, 1, kSpaceSymbol);
      }
      token = tokenizer->find(piece);
      if (token != kNoToken && tokenizer->bytes(token) == text.substr(0, size)) {
        break;
      }
      token = kNoToken;
    }
    if (token == kNoToken) {
      size = 1;
      token = test::byte_tokens(*tokenizer, text.substr(0, 1)).front();
    }
    out.push_back(token);
    text.remove_prefix(size);
  }
  return out;
}

TEST(GrammarLaws, NoValidTextIsForbidden) {
  const auto seed = std::random_device{}();
  Random random(seed);
  for (int round = 0; round < 150; ++round) {
    const Json schema = test::random_schema(random, 3);
    const auto grammar = compiler().json_schema(schema, ThoughtStart::kNone);
    for (int i = 0; i < 4; ++i) {
      const std::string text = test::instance_text(test::random_instance(schema, random), random);
      Matcher matcher(grammar);
      for (const TokenId token : random_cut(text, random)) {
        ASSERT_TRUE(matcher.accept(token))
            << schema << "\n"
            << text << " at token " << matcher.length() << " seed " << seed;
      }
      ASSERT_TRUE(matcher.can_end()) << schema << "\n" << text << " seed " << seed;
    }
  }
}

TEST(GrammarLaws, WalksAreValidInstances) {
  const auto seed = std::random_device{}();
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const Json schema = test::random_schema(random, 3);
    Matcher matcher(compiler().json_schema(schema, ThoughtStart::kNone));
    const std::string text =
        test::tiny_tokenizer()->decode(walk(matcher, random, static_cast<int>(random() % 30)));
    const Json parsed = Json::parse(text, nullptr, false);
    ASSERT_FALSE(parsed.is_discarded()) << schema << "\n" << text << " seed " << seed;
    ASSERT_EQ(test::violation(schema, parsed), "") << schema << "\n" << text << " seed " << seed;
  }
}

}  // namespace
}  // namespace octet
