// Walks a syntax tree with variables and writes the result. One interpreter is one rendering. Not
// for what filters, tests and methods do (filters.h, callable.h). Invariants: scopes live as long
// as the interpreter, so macros may point into them; every loop and recursion is charged against
// the limits.
#pragma once

#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/base/error.h"
#include "octet/jinja/callable.h"
#include "octet/jinja/syntax.h"
#include "octet/jinja/template.h"

namespace octet::jinja {

/// An error that already says where in the template it happened.
class LocatedError : public Error {
 public:
  using Error::Error;
};

struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<NameId, Value>> variables;
  bool captured = false;  // a macro points here

  Value* find(NameId name);
  void set(NameId name, Value value);
};

/// A running for loop, as the variable "loop".
struct LoopState {
  const Statement* statement = nullptr;
  Scope* outer = nullptr;
  Values items;
  size_t index = 0;
  int depth = 0;
  std::unique_ptr<Value> last_changed;
};

class Interpreter {
 public:
  Interpreter(
      const Program& program, std::vector<Entry> variables, const RenderLimits& limits, Clock clock
  );
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Text run();

  // For functions, filters and methods:

  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const MacroSyntax& macro, Scope* scope, const Arguments& arguments);
  Value call_loop(LoopState& loop, const Value& items);
  Value attribute(const Value& object, std::string_view name) const;
  Value item(const Value& object, const Value& key) const;
  /// What a for loop sees: items of a list, keys of a dict, characters of a string.
  Values iterate(const Value& value);
  Value new_namespace(std::vector<std::pair<std::string, Value>> attributes);
  int64_t now() const;
  /// Work of so many steps; throws Error(kResourceExhausted) when that is too much.
  void charge(int64_t steps);
  /// The text as a value; throws Error(kResourceExhausted) when it is too long.
  Value text_value(Text text);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  class Depth;

  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_compare(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* caller);
  Value evaluate_filter(const Expression& expression, const Value* block_text);
  Value evaluate_test(const Expression& expression);
  Value evaluate_unary(const Expression& expression);
  Value evaluate_operator(const Expression& expression);
  Value evaluate_condition(const Expression& expression);
  Values evaluate_all(const std::vector<ExpressionPtr>& operands);
  Arguments evaluate_arguments(const Expression& expression);
  void spread(const Argument& argument, Arguments& out);

  Flow execute(const Block& block);
  Flow execute(const Statement& statement);
  Flow execute_if(const Statement& statement);
  void execute_for(const Statement& statement);
  void run_loop(const Statement& statement, Values items, Scope* outer, int depth);
  void run_items(const std::shared_ptr<LoopState>& loop);
  Values filtered(const Statement& statement, Values items);
  void execute_set(const Statement& statement);
  void execute_call_block(const Statement& statement);
  Flow execute_scoped(const Statement& statement);
  void execute_filter_block(const Statement& statement);
  Text captured(const Block& block);

  void assign(const Target& target, const Value& value);
  Value* lookup(NameId name) const;
  Scope* open_scope(Scope* parent);
  void close_scope(Scope* scope);
  void write(const Text& text);
  Value macro_value(const MacroSyntax& macro);

  const Program& program_;
  RenderLimits limits_;
  Clock clock_;
  int64_t steps_ = 0;
  int depth_ = 0;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  Scope* scope_ = nullptr;
  Text* out_ = nullptr;
};

/// a + b, a * b, ... as Python has them. Throws Error(kInvalidArgument).
Value apply_operator(
    Interpreter& interpreter, std::string_view name, const Value& a, const Value& b
);
/// text[begin:end:step] and the same of lists.
Value slice(
    Interpreter& interpreter,
    const Value& value,
    const Value& begin,
    const Value& end,
    const Value& step
);

/// "range", "namespace", "raise_exception", ...: what every template can name.
std::vector<std::pair<std::string_view, Value>> global_functions();

}  // namespace octet::jinja
