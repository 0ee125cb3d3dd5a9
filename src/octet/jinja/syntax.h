// The syntax tree of a template. Plain data, built by the parser and walked by the interpreter.
// Names of variables are kept as small numbers. Invariant: children that a kind needs are not null.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "octet/jinja/lexer.h"
#include "octet/jinja/value.h"

namespace octet::jinja {

/// A variable: index into Program::names.
using NameId = int32_t;

enum class ExpressionKind : uint8_t {
  kConstant,   // constant
  kName,       // name
  kList,       // operands
  kTuple,      // operands
  kDict,       // operands: key, value, key, value, ...
  kAttribute,  // operands[0] . text
  kItem,       // operands[0] [ operands[1] ]
  kSlice,      // operands[0] [ begin : end : step ], null operands where left out
  kCall,       // operands[0] ( arguments )
  kFilter,     // operands[0] (null in filter blocks) | text ( arguments )
  kTest,       // operands[0] is text ( arguments )
  kUnary,      // text operands[0]: "-", "+", "not"
  kBinary,     // operands[0] text operands[1]
  kAnd,
  kOr,
  kCompare,    // operands[0] comparisons[0] operands[1] comparisons[1] operands[2] ...
  kCondition,  // operands: test, then, otherwise (null: undefined)
};

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Argument {
  enum class Kind : uint8_t { kPositional, kKeyword, kSpread, kSpreadKeywords };
  Kind kind = Kind::kPositional;
  std::string name = {};
  ExpressionPtr value = {};
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  Location location = {};
  std::string text = {};
  NameId name = -1;
  Value constant;
  std::vector<ExpressionPtr> operands = {};
  std::vector<std::string> comparisons = {};
  std::vector<Argument> arguments = {};
};

/// What an assignment writes to: names, or one attribute of a namespace.
struct Target {
  std::vector<Target> parts = {};  // not empty: unpack
  NameId name = -1;
  std::string attribute = {};  // of the namespace `name`
};

enum class StatementKind : uint8_t {
  kText,      // text
  kPrint,     // expression
  kIf,        // branches; body is the else part
  kFor,       // target, expression, filter, body, otherwise
  kSet,       // target, expression
  kSetBlock,  // target, body, filter over the text or null
  kMacro,     // name, parameters, body
  kCall,      // expression is the call, parameters and body those of caller
  kFilter,    // expression is a chain of filters over the text of body
  kWith,      // assignments, body
  kScope,     // body with variables of its own (a generation block)
  kBreak,
  kContinue,
};

struct Statement;
using Block = std::vector<Statement>;

struct Parameter {
  std::string text = {};
  NameId name = -1;
  ExpressionPtr missing = {};  // the default, or null
};

/// A macro's parameters and body, shared with the values that call it.
struct MacroSyntax {
  std::string text = {};
  std::vector<Parameter> parameters = {};
  Block body;
  // Names that the body uses, and that then have a meaning.
  bool takes_varargs = false;
  bool takes_kwargs = false;
  bool takes_caller = false;
};

struct Branch {
  ExpressionPtr test = {};
  Block body;
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  Location location = {};
  std::string text = {};
  NameId name = -1;
  ExpressionPtr expression = {};
  ExpressionPtr filter = {};
  Target target = {};
  std::vector<std::pair<Target, ExpressionPtr>> assignments = {};
  std::vector<Branch> branches;
  Block body;
  Block otherwise;
  bool recursive = false;
  std::unique_ptr<MacroSyntax> macro = {};
};

struct Program {
  Block body;
  std::vector<std::string> names = {};
  NameId loop = -1;
  NameId caller = -1;
  NameId varargs = -1;
  NameId kwargs = -1;
};

}  // namespace octet::jinja
