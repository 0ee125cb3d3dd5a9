#include "octet/grammar/pattern.h"

#include <algorithm>
#include <utility>

namespace octet {
namespace {

PatternPtr make(Pattern pattern) {
  return std::make_shared<const Pattern>(std::move(pattern));
}

}  // namespace

int PatternRules::add(PatternPtr pattern, std::string name) {
  rules.push_back(std::move(pattern));
  names.push_back(std::move(name));
  return static_cast<int>(rules.size()) - 1;
}

PatternPtr literal(std::string_view bytes) {
  return make({.kind = Pattern::Kind::kLiteral, .bytes = std::string(bytes)});
}
PatternPtr characters(CodeSet set) {
  return make({.kind = Pattern::Kind::kCharacters, .set = normalized(std::move(set))});
}
PatternPtr control_token(TokenId token) {
  return make({.kind = Pattern::Kind::kToken, .token = token});
}
PatternPtr sequence(std::vector<PatternPtr> parts) {
  return parts.size() == 1 ? std::move(parts[0])
                           : make({.kind = Pattern::Kind::kSequence, .parts = std::move(parts)});
}
PatternPtr choice(std::vector<PatternPtr> parts) {
  return parts.size() == 1 ? std::move(parts[0])
                           : make({.kind = Pattern::Kind::kChoice, .parts = std::move(parts)});
}
PatternPtr repeat(PatternPtr part, int64_t min, int64_t max) {
  return make({.kind = Pattern::Kind::kRepeat, .min = min, .max = max, .parts = {std::move(part)}});
}
PatternPtr optional(PatternPtr part) {
  return repeat(std::move(part), 0, 1);
}
PatternPtr rule(int index) {
  return make({.kind = Pattern::Kind::kRule, .rule = index});
}
PatternPtr any_text() {
  return repeat(characters({{0, kLastCodePoint}}), 0, kUnbounded);
}

CodeSet normalized(CodeSet set) {
  CodeSet cut;
  for (const CodeRange& range : set) {
    // Surrogates are no characters.
    if (range.first < 0xD800) {
      cut.push_back({range.first, std::min<char32_t>(range.last, 0xD7FF)});
    }
    if (range.last > 0xDFFF) {
      cut.push_back({std::max<char32_t>(range.first, 0xE000), std::min(range.last, kLastCodePoint)}
      );
    }
  }
  std::erase_if(cut, [](const CodeRange& range) { return range.first > range.last; });
  std::sort(cut.begin(), cut.end(), [](const CodeRange& a, const CodeRange& b) {
    return a.first < b.first;
  });
  CodeSet out;
  for (const CodeRange& range : cut) {
    if (!out.empty() && range.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, range.last);
    } else {
      out.push_back(range);
    }
  }
  return out;
}

CodeSet complement(CodeSet set) {
  CodeSet out;
  char32_t next = 0;
  for (const CodeRange& range : normalized(std::move(set))) {
    if (range.first > next) {
      out.push_back({next, range.first - 1});
    }
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) {
    out.push_back({next, kLastCodePoint});
  }
  return normalized(std::move(out));
}

bool contains(const CodeSet& set, char32_t c) {
  return std::any_of(set.begin(), set.end(), [c](const CodeRange& range) {
    return range.first <= c && c <= range.last;
  });
}

}  // namespace octet
