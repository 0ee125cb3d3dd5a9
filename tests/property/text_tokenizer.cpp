// Laws of the tokenizer over random vocabularies and random texts, against the definition taken
// word for word.
#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "octet/text/bpe_merger.h"
#include "support/tokenizer_fixtures.h"

namespace octet {
namespace {

using Random = std::mt19937_64;

const std::vector<std::string> kCharacters = {
    "a", "b", "c", "\n", "\xE2\x96\x81", "\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\xA6\x9C"};

/// A vocabulary whose merges come in random order, so that a merge often makes one of lower rank
/// possible.
test::TokenizerParts random_parts(Random& random) {
  test::TokenizerParts parts = test::TokenizerParts::with_characters(kCharacters);
  const size_t characters = 1 + random() % kCharacters.size();
  std::vector<std::string> pieces(
      kCharacters.begin(), kCharacters.begin() + static_cast<std::ptrdiff_t>(characters)
  );
  std::set<std::string> known(pieces.begin(), pieces.end());
  const size_t wanted = characters + random() % 40;
  for (int attempt = 0; attempt < 200 && pieces.size() < wanted; ++attempt) {
    const std::string left = pieces[random() % pieces.size()];
    const std::string right = pieces[random() % pieces.size()];
    if (left.size() + right.size() > 40) {
      continue;
    }
    if (known.insert(left + right).second) {
      pieces.push_back(left + right);
      parts.pieces.push_back(left + right);
    }
    parts.merges.emplace_back(left, right);
  }
  if (random() % 2 == 0) {
    std::shuffle(parts.merges.begin(), parts.merges.end(), random);
  }
  return parts;
}

/// Text of the vocabulary's characters, with runs, characters that have no piece, spaces, and
/// sometimes broken UTF-8.
std::string random_text(Random& random, size_t length) {
  const std::vector<std::string> others = {" ", "z", "\xE2\x82\xAC", "\xFF", "\xF0\x9F", "<|turn>"};
  const uint64_t variety = 1 + random() % kCharacters.size();
  std::string text;
  while (text.size() < length) {
    const bool other = random() % 40 == 0;
    const std::string& part =
        other ? others[random() % others.size()] : kCharacters[random() % variety];
    for (auto repeats = random() % 30 == 0 ? random() % 100 : 1; repeats > 0; --repeats) {
      text.append(part);
    }
  }
  return text;
}

TEST(TokenizerLaws, EqualsTheDefinitionOnRandomVocabularies) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const test::TokenizerParts parts = random_parts(random);
    const Tokenizer tokenizer(parts.source());
    const test::NaiveBpe naive(parts.source());
    for (const size_t length : {3, 12, 60, 400}) {
      const std::string text = random_text(random, length);
      const std::vector<TokenId> ids = tokenizer.encode(text, SpecialTokens::kPlain);
      ASSERT_EQ(ids, naive.encode(text)) << "seed " << seed << " text " << text;
      ASSERT_EQ(tokenizer.decode(ids), test::spaces_for_symbols(text)) << "seed " << seed;
    }
  }
}

std::vector<TokenId> merge_with(
    const PairTable& pairs, MergeLimits limits, std::vector<TokenId> symbols
) {
  BpeMerger merger(pairs, limits);
  std::vector<TokenId> out;
  merger.merge(symbols, out);
  return out;
}

// Each way of merging, forced on the same runs: by scan, by heap, by lists.
TEST(TokenizerLaws, EveryWayOfMergingGivesTheSame) {
  constexpr size_t kNever = 1'000'000;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const test::TokenizerParts parts = random_parts(random);
    const TokenizerSource source = parts.source();
    const Vocabulary vocabulary(source.pieces, source.declared_special);
    const PairTable pairs(vocabulary, source.merges);
    std::vector<TokenId> symbols;
    const uint64_t variety = 1 + random() % kCharacters.size();
    const size_t length = random() % 2000;
    while (symbols.size() < length) {
      const TokenId symbol = vocabulary.find(kCharacters[random() % variety]);
      symbols.insert(symbols.end(), random() % 10 == 0 ? random() % 100 : 1, symbol);
    }
    const std::vector<TokenId> scanned =
        merge_with(pairs, {.max_scanned = kNever, .min_ordered = kNever}, symbols);
    EXPECT_EQ(merge_with(pairs, {.max_scanned = 0, .min_ordered = kNever}, symbols), scanned)
        << "seed " << seed;
    EXPECT_EQ(merge_with(pairs, {.max_scanned = 0, .min_ordered = 0}, symbols), scanned)
        << "seed " << seed;
  }
}

TEST(TokenizerLaws, QueuePopsInOrderHoweverCandidatesArrive) {
  constexpr size_t kRanks = 7;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    MergeQueue heap;
    MergeQueue lists(kRanks);
    std::multiset<std::pair<MergeRank, int32_t>> expected;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 5 < 3) {
        // Mostly ascending positions, as in a pass over a text.
        const auto position =
            static_cast<int32_t>(random() % 4 == 0 ? random() % 3000 : static_cast<uint64_t>(step));
        const MergeCandidate candidate = {static_cast<MergeRank>(random() % kRanks), position};
        heap.push(candidate);
        lists.push(candidate);
        expected.emplace(candidate.rank, candidate.position);
        continue;
      }
      const MergeCandidate from_heap = heap.pop();
      const MergeCandidate from_lists = lists.pop();
      const auto first = expected.empty() ? std::pair(kNoRank, 0) : *expected.begin();
      ASSERT_EQ(std::pair(from_heap.rank, from_heap.position), first)
          << "seed " << seed << " step " << step;
      ASSERT_EQ(std::pair(from_lists.rank, from_lists.position), first)
          << "seed " << seed << " step " << step;
      if (!expected.empty()) {
        expected.erase(expected.begin());
      }
    }
  }
}

// Would take hours if merging were quadratic.
TEST(TokenizerLaws, MegabytesOfOneCharacterComeBack) {
  const auto tokenizer = test::tiny_tokenizer();
  for (const std::string_view part : {"a", " ", "\n", "ab", "\xF0\x9F\xA6\x9C", "\xFF"}) {
    std::string text;
    while (text.size() < 1'000'000) {
      text.append(part);
    }
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, SpecialTokens::kPlain)), text) << part;
  }
}

/// Any Unicode text, with control tokens spelled out in it.
std::string any_text(Random& random) {
  std::string text;
  for (auto length = random() % 60; length > 0; --length) {
    switch (random() % 6) {
      case 0:
        append_utf8(text, static_cast<char32_t>(random() % 0x80));
        break;
      case 1:
        append_utf8(text, static_cast<char32_t>(0x80 + random() % 0x780));
        break;
      case 2:
        append_utf8(text, static_cast<char32_t>(0x10000 + random() % 0x100000));
        break;
      case 3:
        append_utf8(text, static_cast<char32_t>(0x800 + random() % 0xD000));
        break;
      case 4:
        text.append("the model ");
        break;
      default: {
        auto control = test::gemma4_control_ids().begin();
        std::advance(
            control, static_cast<std::ptrdiff_t>(random() % test::gemma4_control_ids().size())
        );
        text.append(control->second);
      }
    }
  }
  return text;
}

TEST(TokenizerLaws, DecodeOfEncodeIsTheTextAndPlainTextHasNoControlTokens) {
  const auto tokenizer = test::tiny_tokenizer();
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const std::string text = any_text(random);
    const std::vector<TokenId> plain = tokenizer->encode(text, SpecialTokens::kPlain);
    const std::vector<TokenId> parsed = tokenizer->encode(text, SpecialTokens::kParse);
    ASSERT_EQ(tokenizer->decode(plain), test::spaces_for_symbols(text)) << "seed " << seed;
    ASSERT_EQ(tokenizer->decode(parsed), test::spaces_for_symbols(text)) << "seed " << seed;
    ASSERT_TRUE(std::none_of(
        plain.begin(), plain.end(), [&](TokenId id) { return tokenizer->is_control(id); }
    )) << "seed "
       << seed;
  }
}

// Spans are one text: where it is cut into spans of the same kind changes nothing.
TEST(TokenizerLaws, SpansJoin) {
  const auto tokenizer = test::tiny_tokenizer();
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    for (const SpecialTokens kind : {SpecialTokens::kPlain, SpecialTokens::kParse}) {
      const std::string text = any_text(random);
      std::vector<TextSpan> spans;
      for (size_t at = 0; at < text.size();) {
        const size_t length = random() % 8;
        spans.push_back({.text = text.substr(at, length), .special_tokens = kind});
        at += length;
      }
      ASSERT_EQ(tokenizer->encode_spans(spans), tokenizer->encode(text, kind)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace octet
