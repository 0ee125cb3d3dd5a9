// A grammar as what decides the next token of a reply. Adapts the matcher, which refuses tokens, to
// the walk of verification, which may push one that was refused when nothing was allowed.
// Invariant: after a refused token nothing is restricted until that token is taken back.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "octet/grammar/matcher.h"
#include "octet/sampling/token_constraint.h"

namespace octet {

class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<const Grammar> grammar);

  const TokenMask* mask() override;
  void push(TokenId token) override;
  void roll_back(int64_t tokens) override;
  void forced(int64_t most, std::vector<TokenId>& out) const override;

 private:
  bool silent() const { return refused_ > 0 || matcher_.ended(); }

  Matcher matcher_;
  int64_t refused_ = 0;  // tokens pushed since the matcher refused one, that one included
};

}  // namespace octet
