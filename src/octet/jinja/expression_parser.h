// The part of the parser that reads expressions: precedence climbing as Jinja2 has it. Not for
// statements (parser.cpp). Invariant: a Depth is alive wherever the reader recurses.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "octet/jinja/lexer.h"
#include "octet/jinja/syntax.h"

namespace octet::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens);

 protected:
  /// Counts nesting; throws Error(kResourceExhausted) beyond kMaxSyntaxDepth.
  class Depth {
   public:
    explicit Depth(ExpressionParser& parser);
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    ExpressionParser& parser_;
  };

  /// Names with a meaning inside macros that were used since the last reset.
  struct UsedNames {
    bool varargs = false;
    bool kwargs = false;
    bool caller = false;
  };

  const Token& current() const { return tokens_[at_]; }
  Token& next();
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view text);
  const Token& expect(TokenKind kind, std::string_view what);
  void expect_operator(std::string_view text);

  NameId name_id(std::string_view name);
  std::vector<std::string> take_names() { return std::move(names_); }

  /// "a if b else c".
  ExpressionPtr expression();
  /// Expressions with commas between them: a tuple, or the one expression. `conditions`: "if" is
  /// part of it.
  ExpressionPtr tuple(bool conditions);
  /// Filters behind "|": "a(1) | b" over `operand`, null for the text of a block.
  ExpressionPtr filters(ExpressionPtr operand);
  /// A name or an attribute of a namespace.
  Target target();
  /// Targets with commas, also in brackets.
  Target target_list();

  UsedNames used_;

 private:
  using Operators = std::initializer_list<std::string_view>;
  using Reader = ExpressionPtr (ExpressionParser::*)();

  bool at_operator(std::string_view text) const;
  bool at_name(std::string_view text) const;
  ExpressionPtr binary(Operators operators, Reader operand);
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary();
  ExpressionPtr signed_operand(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr constant(Location location, Value value);
  ExpressionPtr name(const Token& token);
  ExpressionPtr bracketed();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr operand);
  ExpressionPtr filters_and_tests(ExpressionPtr operand);
  ExpressionPtr call(ExpressionPtr callee, Location location);
  ExpressionPtr subscript(ExpressionPtr operand);
  ExpressionPtr one_filter(ExpressionPtr operand);
  ExpressionPtr test(ExpressionPtr operand);
  std::vector<Argument> arguments();
  std::string dotted_name();
  bool tuple_ends() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, NameId, std::less<>> name_ids_;
};

}  // namespace octet::jinja
