#include "octet/jinja/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/jinja/parser.h"

namespace octet::jinja {
namespace {

std::unique_ptr<Expression> make(ExpressionKind kind, Location location) {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->location = location;
  return out;
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kPrintBegin:
      return "{{";
    case TokenKind::kPrintEnd:
      return "}}";
    case TokenKind::kBlockBegin:
      return "{%";
    case TokenKind::kBlockEnd:
      return "%}";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

Value number_of(const Token& token) {
  if (token.kind == TokenKind::kReal) {
    double value = 0.0;
    std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
    return Value::real(value);
  }
  int64_t value = 0;
  const auto result =
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
  if (result.ec != std::errc()) {
    fail_malformed(token.location, "this number does not fit 64 bits");
  }
  return Value::integer(value);
}

}  // namespace

ExpressionParser::Depth::Depth(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.depth_ > kMaxSyntaxDepth) {
    const Location location = parser_.current().location;
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format(
            "line {}, column {}: nested more than {} levels deep",
            location.line,
            location.column,
            kMaxSyntaxDepth
        )
    );
  }
}

ExpressionParser::ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

Token& ExpressionParser::next() {
  Token& token = tokens_[at_];
  at_ += at_ + 1 < tokens_.size() ? 1 : 0;  // the end stays
  return token;
}

bool ExpressionParser::at_operator(std::string_view text) const {
  return current().kind == TokenKind::kOperator && current().text == text;
}
bool ExpressionParser::at_name(std::string_view text) const {
  return current().kind == TokenKind::kName && current().text == text;
}
bool ExpressionParser::skip_name(std::string_view name) {
  const bool found = at_name(name);
  at_ += found ? 1 : 0;
  return found;
}
bool ExpressionParser::skip_operator(std::string_view text) {
  const bool found = at_operator(text);
  at_ += found ? 1 : 0;
  return found;
}

const Token& ExpressionParser::expect(TokenKind kind, std::string_view what) {
  const Token& token = next();
  if (token.kind != kind) {
    fail_malformed(token.location, fmt::format("expected {}, not {}", what, shown(token)));
  }
  return token;
}

void ExpressionParser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) {
    fail_malformed(
        current().location, fmt::format("expected '{}', not {}", text, shown(current()))
    );
  }
}

NameId ExpressionParser::name_id(std::string_view name) {
  const auto found = name_ids_.find(name);
  if (found != name_ids_.end()) {
    return found->second;
  }
  const auto id = static_cast<NameId>(names_.size());
  names_.emplace_back(name);
  name_ids_.emplace(name, id);
  return id;
}

ExpressionPtr ExpressionParser::expression() {
  const Depth depth(*this);
  const Location location = current().location;
  ExpressionPtr value = disjunction();
  int chained = 0;
  while (skip_name("if")) {
    if (++chained > kMaxSyntaxDepth) {
      fail_malformed(location, "too many conditions in one expression");
    }
    auto out = make(ExpressionKind::kCondition, location);
    out->operands.push_back(disjunction());
    out->operands.push_back(std::move(value));
    out->operands.push_back(skip_name("else") ? expression() : nullptr);
    value = std::move(out);
  }
  return value;
}

bool ExpressionParser::tuple_ends() const {
  return current().kind == TokenKind::kPrintEnd || current().kind == TokenKind::kBlockEnd ||
         at_operator(")") || at_name("in") || at_name("if") || at_name("recursive") ||
         at_operator("=") || current().kind == TokenKind::kEnd;
}

ExpressionPtr ExpressionParser::tuple(bool conditions) {
  const Depth depth(*this);
  const Location location = current().location;
  ExpressionPtr first = conditions ? expression() : disjunction();
  if (!at_operator(",")) {
    return first;
  }
  auto out = make(ExpressionKind::kTuple, location);
  out->operands.push_back(std::move(first));
  while (skip_operator(",") && !tuple_ends()) {
    out->operands.push_back(conditions ? expression() : disjunction());
  }
  return out;
}

Target ExpressionParser::target() {
  const Depth depth(*this);
  if (skip_operator("(")) {
    Target out = target_list();
    expect_operator(")");
    return out;
  }
  const Token& token = expect(TokenKind::kName, "a variable's name");
  Target out = {.name = name_id(token.text)};
  if (skip_operator(".")) {
    out.attribute = expect(TokenKind::kName, "an attribute's name").text;
  }
  return out;
}

Target ExpressionParser::target_list() {
  Target first = target();
  if (!at_operator(",")) {
    return first;
  }
  Target out;
  out.parts.push_back(std::move(first));
  while (skip_operator(",") && !tuple_ends()) {
    out.parts.push_back(target());
  }
  return out;
}

ExpressionPtr ExpressionParser::binary(Operators operators, Reader operand) {
  const Location location = current().location;
  ExpressionPtr left = (this->*operand)();
  int chained = 0;
  while (true) {
    const auto found = std::find_if(operators.begin(), operators.end(), [this](auto text) {
      return at_operator(text);
    });
    if (found == operators.end()) {
      return left;
    }
    if (++chained > kMaxSyntaxDepth) {
      fail_malformed(location, "too many operators in one expression; use brackets or set");
    }
    next();
    auto out = make(ExpressionKind::kBinary, location);
    out->text = *found;
    out->operands.push_back(std::move(left));
    out->operands.push_back((this->*operand)());
    left = std::move(out);
  }
}

ExpressionPtr ExpressionParser::disjunction() {
  auto out = make(ExpressionKind::kOr, current().location);
  out->operands.push_back(conjunction());
  while (skip_name("or")) {
    out->operands.push_back(conjunction());
  }
  return out->operands.size() == 1 ? std::move(out->operands[0]) : ExpressionPtr(std::move(out));
}

ExpressionPtr ExpressionParser::conjunction() {
  auto out = make(ExpressionKind::kAnd, current().location);
  out->operands.push_back(negation());
  while (skip_name("and")) {
    out->operands.push_back(negation());
  }
  return out->operands.size() == 1 ? std::move(out->operands[0]) : ExpressionPtr(std::move(out));
}

ExpressionPtr ExpressionParser::negation() {
  const Depth depth(*this);
  const Location location = current().location;
  if (!skip_name("not")) {
    return comparison();
  }
  auto out = make(ExpressionKind::kUnary, location);
  out->text = "not";
  out->operands.push_back(negation());
  return out;
}

ExpressionPtr ExpressionParser::comparison() {
  auto out = make(ExpressionKind::kCompare, current().location);
  out->operands.push_back(sum());
  while (true) {
    static constexpr std::array<std::string_view, 6> kOperators = {
        "==", "!=", "<=", ">=", "<", ">"};
    const auto found = std::find_if(kOperators.begin(), kOperators.end(), [this](auto text) {
      return at_operator(text);
    });
    const bool not_in = at_name("not") && tokens_[at_ + 1].kind == TokenKind::kName &&
                        tokens_[at_ + 1].text == "in";
    if (found != kOperators.end()) {
      next();
      out->comparisons.emplace_back(*found);
    } else if (not_in) {
      at_ += 2;
      out->comparisons.emplace_back("not in");
    } else if (skip_name("in")) {
      out->comparisons.emplace_back("in");
    } else {
      break;
    }
    out->operands.push_back(sum());
  }
  return out->operands.size() == 1 ? std::move(out->operands[0]) : ExpressionPtr(std::move(out));
}

ExpressionPtr ExpressionParser::sum() {
  return binary({"+", "-"}, &ExpressionParser::concatenation);
}
ExpressionPtr ExpressionParser::concatenation() {
  return binary({"~"}, &ExpressionParser::product);
}
ExpressionPtr ExpressionParser::product() {
  return binary({"*", "/", "//", "%"}, &ExpressionParser::power);
}
ExpressionPtr ExpressionParser::power() {
  return binary({"**"}, &ExpressionParser::unary);
}
ExpressionPtr ExpressionParser::unary() {
  return signed_operand(true);
}

ExpressionPtr ExpressionParser::signed_operand(bool with_filters) {
  const Depth depth(*this);
  const Location location = current().location;
  ExpressionPtr value;
  if (at_operator("-") || at_operator("+")) {
    auto out = make(ExpressionKind::kUnary, location);
    out->text = next().text;
    out->operands.push_back(signed_operand(false));
    value = postfix(std::move(out));
  } else {
    value = postfix(primary());
  }
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::constant(Location location, Value value) {
  auto out = make(ExpressionKind::kConstant, location);
  out->constant = std::move(value);
  return out;
}

ExpressionPtr ExpressionParser::name(const Token& token) {
  const std::string& text = token.text;
  if (text == "true" || text == "True" || text == "false" || text == "False") {
    return constant(token.location, Value::boolean(text == "true" || text == "True"));
  }
  if (text == "none" || text == "None") {
    return constant(token.location, Value());
  }
  used_.varargs |= text == "varargs";
  used_.kwargs |= text == "kwargs";
  used_.caller |= text == "caller";
  auto out = make(ExpressionKind::kName, token.location);
  out->name = name_id(text);
  out->text = text;
  return out;
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = next();
  switch (token.kind) {
    case TokenKind::kName:
      return name(token);
    case TokenKind::kInteger:
    case TokenKind::kReal:
      return constant(token.location, number_of(token));
    case TokenKind::kString: {
      std::string text = token.text;
      while (current().kind == TokenKind::kString) {
        text.append(next().text);
      }
      return constant(token.location, Value::text(text));
    }
    default:
      break;
  }
  if (token.kind == TokenKind::kOperator && token.text == "(") {
    return bracketed();
  }
  if (token.kind == TokenKind::kOperator && token.text == "[") {
    return list();
  }
  if (token.kind == TokenKind::kOperator && token.text == "{") {
    return dict();
  }
  fail_malformed(token.location, fmt::format("expected an expression, not {}", shown(token)));
}

ExpressionPtr ExpressionParser::bracketed() {
  const Location location = current().location;
  if (skip_operator(")")) {
    return make(ExpressionKind::kTuple, location);
  }
  ExpressionPtr value = tuple(true);
  expect_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::list() {
  auto out = make(ExpressionKind::kList, current().location);
  while (!skip_operator("]")) {
    if (!out->operands.empty()) {
      expect_operator(",");
      if (skip_operator("]")) {
        break;
      }
    }
    out->operands.push_back(expression());
  }
  return out;
}

ExpressionPtr ExpressionParser::dict() {
  auto out = make(ExpressionKind::kDict, current().location);
  while (!skip_operator("}")) {
    if (!out->operands.empty()) {
      expect_operator(",");
      if (skip_operator("}")) {
        break;
      }
    }
    out->operands.push_back(expression());
    expect_operator(":");
    out->operands.push_back(expression());
  }
  return out;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr operand) {
  int chained = 0;
  while (true) {
    const Location location = current().location;
    if (++chained > kMaxSyntaxDepth) {
      fail_malformed(location, "too many subscripts and calls in a row");
    }
    if (skip_operator(".")) {
      auto out = make(ExpressionKind::kAttribute, location);
      const Token& token = next();
      if (token.kind == TokenKind::kInteger) {
        out->kind = ExpressionKind::kItem;
        out->operands.push_back(std::move(operand));
        out->operands.push_back(constant(token.location, number_of(token)));
      } else if (token.kind == TokenKind::kName) {
        out->text = token.text;
        out->operands.push_back(std::move(operand));
      } else {
        fail_malformed(token.location, fmt::format("expected a name, not {}", shown(token)));
      }
      operand = std::move(out);
    } else if (skip_operator("[")) {
      operand = subscript(std::move(operand));
    } else if (skip_operator("(")) {
      operand = call(std::move(operand), location);
    } else {
      return operand;
    }
  }
}

/// Behind "(".
ExpressionPtr ExpressionParser::call(ExpressionPtr callee, Location location) {
  auto out = make(ExpressionKind::kCall, location);
  out->operands.push_back(std::move(callee));
  out->arguments = arguments();
  return out;
}

/// Behind "[".
ExpressionPtr ExpressionParser::subscript(ExpressionPtr operand) {
  const Location location = current().location;
  std::vector<ExpressionPtr> parts;
  ExpressionPtr part;
  bool slice = false;
  while (!skip_operator("]")) {
    if (skip_operator(":")) {
      slice = true;
      parts.push_back(std::move(part));
    } else if (part != nullptr) {
      fail_malformed(current().location, fmt::format("expected ']', not {}", shown(current())));
    } else {
      part = expression();
    }
  }
  if (!slice && part == nullptr) {
    fail_malformed(location, "an empty subscript");
  }
  parts.push_back(std::move(part));
  if (parts.size() > 3) {
    fail_malformed(location, "a slice has at most three parts");
  }
  auto out = make(slice ? ExpressionKind::kSlice : ExpressionKind::kItem, location);
  out->operands.push_back(std::move(operand));
  for (ExpressionPtr& one : parts) {
    out->operands.push_back(std::move(one));
  }
  if (slice) {
    out->operands.resize(4);
  }
  return out;
}

/// Behind "(".
std::vector<Argument> ExpressionParser::arguments() {
  std::vector<Argument> out;
  while (!skip_operator(")")) {
    if (!out.empty()) {
      expect_operator(",");
      if (skip_operator(")")) {
        break;
      }
    }
    Argument argument;
    const Location location = current().location;
    const bool keyword = current().kind == TokenKind::kName &&
                         tokens_[at_ + 1].kind == TokenKind::kOperator &&
                         tokens_[at_ + 1].text == "=";
    if (skip_operator("**")) {
      argument.kind = Argument::Kind::kSpreadKeywords;
    } else if (skip_operator("*")) {
      argument.kind = Argument::Kind::kSpread;
    } else if (keyword) {
      argument.kind = Argument::Kind::kKeyword;
      argument.name = next().text;
      next();
    } else if (!out.empty() && out.back().kind == Argument::Kind::kKeyword) {
      fail_malformed(location, "an argument without name follows one with a name");
    }
    argument.value = expression();
    out.push_back(std::move(argument));
  }
  return out;
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr operand) {
  int chained = 0;
  while (true) {
    const Location location = current().location;
    if (++chained > kMaxSyntaxDepth) {
      fail_malformed(location, "too many filters in a row");
    }
    if (skip_operator("|")) {
      operand = one_filter(std::move(operand));
    } else if (skip_name("is")) {
      operand = test(std::move(operand));
    } else if (skip_operator("(")) {
      operand = call(std::move(operand), location);
    } else {
      return operand;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr operand) {
  int chained = 0;
  do {
    if (++chained > kMaxSyntaxDepth) {
      fail_malformed(current().location, "too many filters in a row");
    }
    operand = one_filter(std::move(operand));
  } while (skip_operator("|"));
  return operand;
}

std::string ExpressionParser::dotted_name() {
  std::string text = expect(TokenKind::kName, "a name").text;
  while (skip_operator(".")) {
    text.append(".").append(expect(TokenKind::kName, "a name").text);
  }
  return text;
}

ExpressionPtr ExpressionParser::one_filter(ExpressionPtr operand) {
  auto out = make(ExpressionKind::kFilter, current().location);
  out->text = dotted_name();
  out->operands.push_back(std::move(operand));
  if (skip_operator("(")) {
    out->arguments = arguments();
  }
  return out;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr operand) {
  const Location location = current().location;
  const bool negated = skip_name("not");
  auto out = make(ExpressionKind::kTest, current().location);
  out->text = dotted_name();
  out->operands.push_back(std::move(operand));
  const TokenKind kind = current().kind;
  const bool bare_argument = kind == TokenKind::kName || kind == TokenKind::kString ||
                             kind == TokenKind::kInteger || kind == TokenKind::kReal ||
                             at_operator("[") || at_operator("{");
  const bool word = at_name("else") || at_name("or") || at_name("and") || at_name("if") ||
                    at_name("is") || at_name("in") || at_name("not") || at_name("recursive");
  if (skip_operator("(")) {
    out->arguments = arguments();
  } else if (bare_argument && !word) {
    Argument argument;
    argument.value = postfix(primary());
    out->arguments.push_back(std::move(argument));
  }
  if (!negated) {
    return out;
  }
  auto opposite = make(ExpressionKind::kUnary, location);
  opposite->text = "not";
  opposite->operands.push_back(std::move(out));
  return opposite;
}

}  // namespace octet::jinja
