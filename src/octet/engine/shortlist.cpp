#include "octet/engine/shortlist.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace octet {

void TokenCounts::add(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < std::ssize(counts_)) {
      ++counts_[static_cast<size_t>(token)];
      ++total_;
    }
  }
}

int64_t TokenCounts::distinct() const {
  return std::count_if(counts_.begin(), counts_.end(), [](int64_t count) { return count > 0; });
}

double TokenCounts::covered(std::span<const TokenId> shortlist) const {
  int64_t inside = 0;
  for (const TokenId token : shortlist) {
    inside += counts_[static_cast<size_t>(token)];
  }
  return total_ > 0 ? static_cast<double>(inside) / static_cast<double>(total_) : 1.0;
}

std::vector<TokenId> TokenCounts::shortlist(int64_t size, std::span<const TokenId> always) const {
  std::vector<int64_t> weights = counts_;
  for (const TokenId token : always) {
    weights[static_cast<size_t>(token)] = std::numeric_limits<int64_t>::max();
  }
  std::vector<TokenId> tokens(counts_.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  std::stable_sort(tokens.begin(), tokens.end(), [&](TokenId a, TokenId b) {
    return weights[static_cast<size_t>(a)] > weights[static_cast<size_t>(b)];
  });
  tokens.resize(static_cast<size_t>(std::min(size, std::ssize(counts_))));
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

}  // namespace octet
