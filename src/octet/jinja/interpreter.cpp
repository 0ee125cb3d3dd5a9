#include "octet/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "octet/jinja/filters.h"

namespace octet::jinja {
namespace {

constexpr int64_t kBytesPerStep = 64;

class Macro : public Callable {
 public:
  Macro(const MacroSyntax& syntax, Scope* scope)
      : Callable(syntax.text), syntax_(syntax), scope_(scope) {}
  Value call(Interpreter& interpreter, const Arguments& arguments) const override {
    return interpreter.call_macro(syntax_, scope_, arguments);
  }

 private:
  const MacroSyntax& syntax_;
  Scope* scope_;
};

/// Runs `work`; an error that does not say where it happened gets the place of `location`.
template <typename Work>
auto located(Location location, Work&& work) {
  try {
    return work();
  } catch (const LocatedError&) {
    throw;
  } catch (const Error& error) {
    throw LocatedError(
        error.kind(),
        fmt::format("line {}, column {}: {}", location.line, location.column, error.what())
    );
  }
}

Error invalid(std::string message) {
  return {ErrorKind::kInvalidArgument, std::move(message)};
}

}  // namespace

class Interpreter::Depth {
 public:
  Depth(Interpreter& interpreter, Location location) : interpreter_(interpreter) {
    if (interpreter.depth_ >= interpreter.limits_.max_depth) {
      throw LocatedError(
          ErrorKind::kResourceExhausted,
          fmt::format(
              "line {}, column {}: the template calls itself too deeply",
              location.line,
              location.column
          )
      );
    }
    ++interpreter_.depth_;
    interpreter_.charge(1);
  }
  ~Depth() { --interpreter_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& interpreter_;
};

Value* Scope::find(NameId name) {
  for (auto& [key, value] : variables) {
    if (key == name) {
      return &value;
    }
  }
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  if (Value* old = find(name)) {
    *old = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

Interpreter::Interpreter(
    const Program& program, std::vector<Entry> variables, const RenderLimits& limits, Clock clock
)
    : program_(program), limits_(limits), clock_(std::move(clock)) {
  scope_ = open_scope(nullptr);
  const Value context = Value::dict(std::move(variables));
  const auto functions = global_functions();
  for (size_t id = 0; id < program_.names.size(); ++id) {
    const std::string& name = program_.names[id];
    if (const Value* value = context.as_dict()->find(name)) {
      scope_->set(static_cast<NameId>(id), *value);
      continue;
    }
    for (const auto& [function_name, function] : functions) {
      if (function_name == name) {
        scope_->set(static_cast<NameId>(id), function);
      }
    }
  }
  scope_ = open_scope(scope_);
}

/// Namespaces may refer to each other: without this they would keep themselves alive.
Interpreter::~Interpreter() {
  for (const auto& one : namespaces_) {
    one->attributes.clear();
  }
}

Text Interpreter::run() {
  Text out;
  out_ = &out;
  execute(program_.body);
  return out;
}

void Interpreter::charge(int64_t steps) {
  steps_ += steps;
  if (steps_ > limits_.max_steps) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the template takes more than {} steps", limits_.max_steps)
    );
  }
}

Value Interpreter::text_value(Text text) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes > limits_.max_text_bytes) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the template makes a text of more than {} bytes", limits_.max_text_bytes)
    );
  }
  charge(bytes / kBytesPerStep + static_cast<int64_t>(text.runs().size()));
  return Value::text(std::move(text));
}

int64_t Interpreter::now() const {
  return clock_ ? clock_() : 0;
}

// Scopes and output.

Scope* Interpreter::open_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    scopes_.emplace_back();
    free_scopes_.push_back(&scopes_.back());
  }
  Scope* scope = free_scopes_.back();
  free_scopes_.pop_back();
  scope->parent = parent;
  return scope;
}

void Interpreter::close_scope(Scope* scope) {
  if (!scope->captured) {
    scope->variables.clear();
    free_scopes_.push_back(scope);
  }
}

Value* Interpreter::lookup(NameId name) const {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (Value* value = scope->find(name)) {
      return value;
    }
  }
  return nullptr;
}

void Interpreter::write(const Text& text) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (bytes + static_cast<int64_t>(out_->size()) > limits_.max_text_bytes) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format("the template writes more than {} bytes", limits_.max_text_bytes)
    );
  }
  charge(bytes / kBytesPerStep + static_cast<int64_t>(text.runs().size()));
  out_->append(text);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const Values items = iterate(value);
    if (items.size() != target.parts.size()) {
      throw invalid(fmt::format(
          "{} values cannot be unpacked into {} variables", items.size(), target.parts.size()
      ));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      assign(target.parts[i], items[i]);
    }
  } else if (target.attribute.empty()) {
    scope_->set(target.name, value);
  } else {
    const Value* object = lookup(target.name);
    Namespace* space = object == nullptr ? nullptr : object->as_namespace();
    if (space == nullptr) {
      throw invalid("only attributes of a namespace can be set");
    }
    if (Value* old = space->find(target.attribute)) {
      *old = value;
    } else {
      space->attributes.emplace_back(target.attribute, value);
    }
  }
}

Value Interpreter::new_namespace(std::vector<std::pair<std::string, Value>> attributes) {
  namespaces_.push_back(std::make_shared<Namespace>(Namespace{std::move(attributes)}));
  return Value(namespaces_.back());
}

// Expressions.

Value Interpreter::evaluate(const Expression& expression) {
  const Depth depth(*this, expression.location);
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return evaluate_name(expression);
    case ExpressionKind::kList:
      return Value::list(evaluate_all(expression.operands));
    case ExpressionKind::kTuple:
      return Value::tuple(evaluate_all(expression.operands));
    case ExpressionKind::kDict:
      return evaluate_dict(expression);
    case ExpressionKind::kAttribute: {
      const Value object = evaluate(*expression.operands[0]);
      return located(expression.location, [&] { return attribute(object, expression.text); });
    }
    case ExpressionKind::kItem: {
      const Value object = evaluate(*expression.operands[0]);
      const Value key = evaluate(*expression.operands[1]);
      return located(expression.location, [&] { return item(object, key); });
    }
    case ExpressionKind::kSlice:
      return evaluate_slice(expression);
    case ExpressionKind::kCall:
      return evaluate_call(expression, nullptr);
    case ExpressionKind::kFilter:
      return evaluate_filter(expression, nullptr);
    case ExpressionKind::kTest:
      return evaluate_test(expression);
    case ExpressionKind::kUnary:
      return evaluate_unary(expression);
    case ExpressionKind::kBinary:
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
      return evaluate_operator(expression);
    case ExpressionKind::kCompare:
      return evaluate_compare(expression);
    case ExpressionKind::kCondition:
      return evaluate_condition(expression);
  }
  return {};
}

Value Interpreter::evaluate_name(const Expression& expression) {
  const Value* value = lookup(expression.name);
  return value != nullptr ? *value
                          : Value::undefined(fmt::format("'{}' is undefined", expression.text));
}

Values Interpreter::evaluate_all(const std::vector<ExpressionPtr>& operands) {
  Values out;
  out.reserve(operands.size());
  for (const ExpressionPtr& operand : operands) {
    out.push_back(evaluate(*operand));
  }
  return out;
}

Value Interpreter::evaluate_dict(const Expression& expression) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < expression.operands.size(); i += 2) {
    Value key = evaluate(*expression.operands[i]);
    entries.emplace_back(std::move(key), evaluate(*expression.operands[i + 1]));
  }
  return located(expression.location, [&] { return Value::dict(std::move(entries)); });
}

Value Interpreter::evaluate_slice(const Expression& expression) {
  const Value object = evaluate(*expression.operands[0]);
  Values parts;
  for (size_t i = 1; i < 4; ++i) {
    parts.push_back(
        expression.operands[i] == nullptr ? Value() : evaluate(*expression.operands[i])
    );
  }
  return located(expression.location, [&] {
    return slice(*this, object, parts[0], parts[1], parts[2]);
  });
}

Value Interpreter::evaluate_compare(const Expression& expression) {
  Value left = evaluate(*expression.operands[0]);
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    Value right = evaluate(*expression.operands[i + 1]);
    const bool holds = located(expression.location, [&] {
      const std::string& name = expression.comparisons[i];
      charge(1);
      if (name == "==" || name == "!=") {
        return equal(left, right) == (name == "==");
      }
      if (name == "in" || name == "not in") {
        return contains(right, left) == (name == "in");
      }
      const int order = compare(left, right);
      return name == "<"    ? order < 0
             : name == "<=" ? order <= 0
             : name == ">"  ? order > 0
                            : order >= 0;
    });
    if (!holds) {
      return Value::boolean(false);
    }
    left = std::move(right);
  }
  return Value::boolean(true);
}

void Interpreter::spread(const Argument& argument, Arguments& out) {
  const Value value = evaluate(*argument.value);
  if (argument.kind == Argument::Kind::kSpread) {
    for (Value& item : iterate(value)) {
      out.positional.push_back(std::move(item));
    }
    return;
  }
  if (value.as_dict() == nullptr) {
    throw invalid(fmt::format("** needs a dict, not a {}", type_name(value)));
  }
  for (const auto& [key, item] : value.as_dict()->entries()) {
    out.keywords.emplace_back(to_text(key).bytes(), item);
  }
}

Arguments Interpreter::evaluate_arguments(const Expression& expression) {
  Arguments out;
  for (const Argument& argument : expression.arguments) {
    if (argument.kind == Argument::Kind::kPositional) {
      out.positional.push_back(evaluate(*argument.value));
    } else if (argument.kind == Argument::Kind::kKeyword) {
      out.keywords.emplace_back(argument.name, evaluate(*argument.value));
    } else {
      located(expression.location, [&] { spread(argument, out); });
    }
  }
  return out;
}

Value Interpreter::evaluate_call(const Expression& expression, const Value* caller) {
  const Value callee = evaluate(*expression.operands[0]);
  Arguments arguments = evaluate_arguments(expression);
  if (caller != nullptr) {
    arguments.keywords.emplace_back("caller", *caller);
  }
  return located(expression.location, [&] { return call(callee, arguments); });
}

Value Interpreter::evaluate_filter(const Expression& expression, const Value* block_text) {
  const Expression* operand = expression.operands[0].get();
  const Depth depth(*this, expression.location);
  const Value value = operand == nullptr ? *block_text
                      : operand->kind == ExpressionKind::kFilter
                          ? evaluate_filter(*operand, block_text)
                          : evaluate(*operand);
  const Arguments arguments = evaluate_arguments(expression);
  return located(expression.location, [&] {
    return apply_filter(*this, expression.text, value, arguments);
  });
}

Value Interpreter::evaluate_test(const Expression& expression) {
  const Value value = evaluate(*expression.operands[0]);
  const Arguments arguments = evaluate_arguments(expression);
  return located(expression.location, [&] {
    return Value::boolean(apply_test(*this, expression.text, value, arguments));
  });
}

Value Interpreter::evaluate_unary(const Expression& expression) {
  const Value value = evaluate(*expression.operands[0]);
  if (expression.text == "not") {
    return Value::boolean(!value.truthy());
  }
  return located(expression.location, [&] {
    if (!value.is_number()) {
      throw invalid(fmt::format("a {} has no sign", type_name(value)));
    }
    return apply_operator(*this, expression.text, Value::integer(0), value);
  });
}

Value Interpreter::evaluate_operator(const Expression& expression) {
  if (expression.kind == ExpressionKind::kBinary) {
    const Value left = evaluate(*expression.operands[0]);
    const Value right = evaluate(*expression.operands[1]);
    return located(expression.location, [&] {
      return apply_operator(*this, expression.text, left, right);
    });
  }
  const bool until = expression.kind == ExpressionKind::kOr;
  Value value;
  for (const ExpressionPtr& operand : expression.operands) {
    value = evaluate(*operand);
    if (value.truthy() == until) {
      break;
    }
  }
  return value;
}

Value Interpreter::evaluate_condition(const Expression& expression) {
  if (evaluate(*expression.operands[0]).truthy()) {
    return evaluate(*expression.operands[1]);
  }
  return expression.operands[2] != nullptr
             ? evaluate(*expression.operands[2])
             : Value::undefined("the condition does not hold and there is no else");
}

// Calls.

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  charge(1 + static_cast<int64_t>(arguments.positional.size()));
  if (const Callable* callable = callee.as_callable()) {
    return callable->call(*this, arguments);
  }
  if (LoopState* loop = callee.as_loop()) {
    return call_loop(*loop, arguments.required(0, "iterable"));
  }
  throw invalid(
      callee.is_undefined() ? callee.what()
                            : fmt::format("a {} cannot be called", type_name(callee))
  );
}

Value Interpreter::call_macro(const MacroSyntax& macro, Scope* scope, const Arguments& arguments) {
  Scope* const before = scope_;
  scope_ = open_scope(scope);
  const size_t count = macro.parameters.size();
  Values more;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    if (i < count) {
      scope_->set(macro.parameters[i].name, arguments.positional[i]);
    } else {
      more.push_back(arguments.positional[i]);
    }
  }
  if (!more.empty() && !macro.takes_varargs) {
    throw invalid(fmt::format("macro '{}' takes at most {} arguments", macro.text, count));
  }
  std::vector<Entry> other;
  for (const auto& [name, value] : arguments.keywords) {
    const auto parameter = std::find_if(
        macro.parameters.begin(),
        macro.parameters.end(),
        [&name = name](const Parameter& one) { return one.text == name; }
    );
    if (parameter != macro.parameters.end()) {
      scope_->set(parameter->name, value);
    } else if (name == "caller" && macro.takes_caller) {
      scope_->set(program_.caller, value);
    } else if (macro.takes_kwargs) {
      other.emplace_back(Value::text(name), value);
    } else {
      throw invalid(fmt::format("macro '{}' has no parameter '{}'", macro.text, name));
    }
  }
  if (macro.takes_varargs) {
    scope_->set(program_.varargs, Value::tuple(std::move(more)));
  }
  if (macro.takes_kwargs) {
    scope_->set(program_.kwargs, Value::dict(std::move(other)));
  }
  for (const Parameter& parameter : macro.parameters) {
    if (scope_->find(parameter.name) == nullptr) {
      Value missing =
          parameter.missing != nullptr
              ? evaluate(*parameter.missing)
              : Value::undefined(fmt::format("parameter '{}' was not provided", parameter.text));
      scope_->set(parameter.name, std::move(missing));
    }
  }
  Text text = captured(macro.body);
  close_scope(scope_);
  scope_ = before;
  return text_value(std::move(text));
}

Value Interpreter::call_loop(LoopState& loop, const Value& items) {
  if (!loop.statement->recursive) {
    throw invalid("this loop is not recursive");
  }
  Text text;
  Text* const before = std::exchange(out_, &text);
  run_loop(*loop.statement, iterate(items), loop.outer, loop.depth + 1);
  out_ = before;
  return text_value(std::move(text));
}

// Statements.

Text Interpreter::captured(const Block& block) {
  Text text;
  Text* const before = std::exchange(out_, &text);
  execute(block);
  out_ = before;
  return text;
}

Interpreter::Flow Interpreter::execute(const Block& block) {
  for (const Statement& statement : block) {
    const Flow flow = execute(statement);
    if (flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Statement& statement) {
  const Depth depth(*this, statement.location);
  switch (statement.kind) {
    case StatementKind::kText:
      write(Text(statement.text));
      break;
    case StatementKind::kPrint:
      write(to_text(evaluate(*statement.expression)));
      break;
    case StatementKind::kIf:
      return execute_if(statement);
    case StatementKind::kFor:
      execute_for(statement);
      break;
    case StatementKind::kSet:
    case StatementKind::kSetBlock:
      execute_set(statement);
      break;
    case StatementKind::kMacro:
      scope_->set(statement.name, macro_value(*statement.macro));
      break;
    case StatementKind::kCall:
      execute_call_block(statement);
      break;
    case StatementKind::kFilter:
      execute_filter_block(statement);
      break;
    case StatementKind::kWith:
    case StatementKind::kScope:
      return execute_scoped(statement);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (evaluate(*branch.test).truthy()) {
      return execute(branch.body);
    }
  }
  return execute(statement.body);
}

void Interpreter::execute_for(const Statement& statement) {
  const Value value = evaluate(*statement.expression);
  Values items = located(statement.location, [&] { return iterate(value); });
  run_loop(statement, std::move(items), scope_, 0);
}

Values Interpreter::filtered(const Statement& statement, Values items) {
  if (statement.filter == nullptr) {
    return items;
  }
  Values kept;
  scope_ = open_scope(scope_);
  for (Value& item : items) {
    located(statement.location, [&] { assign(statement.target, item); });
    if (evaluate(*statement.filter).truthy()) {
      kept.push_back(std::move(item));
    }
  }
  Scope* const scope = std::exchange(scope_, scope_->parent);
  close_scope(scope);
  return kept;
}

void Interpreter::run_loop(const Statement& statement, Values items, Scope* outer, int depth) {
  Scope* const before = std::exchange(scope_, outer);
  items = filtered(statement, std::move(items));
  if (items.empty()) {
    scope_ = open_scope(outer);
    execute(statement.otherwise);
  } else {
    // What "changed" remembers may hold the loop itself: forgotten at the end, however it comes.
    const auto forget = [](LoopState* state) { state->last_changed.reset(); };
    auto loop = std::make_shared<LoopState>();
    const std::unique_ptr<LoopState, decltype(forget)> end(loop.get(), forget);
    loop->statement = &statement;
    loop->outer = outer;
    loop->items = std::move(items);
    loop->depth = depth;
    scope_ = open_scope(outer);
    run_items(loop);
  }
  close_scope(scope_);
  scope_ = before;
}

void Interpreter::run_items(const std::shared_ptr<LoopState>& loop) {
  const Statement& statement = *loop->statement;
  for (; loop->index < loop->items.size(); ++loop->index) {
    charge(1);
    if (scope_->captured) {
      scope_ = open_scope(loop->outer);  // a macro still sees the last round's variables
    } else {
      scope_->variables.clear();
    }
    scope_->set(program_.loop, Value(loop));
    located(statement.location, [&] { assign(statement.target, loop->items[loop->index]); });
    if (execute(statement.body) == Flow::kBreak) {
      return;
    }
  }
}

void Interpreter::execute_set(const Statement& statement) {
  Value value;
  if (statement.kind == StatementKind::kSet) {
    value = evaluate(*statement.expression);
  } else {
    scope_ = open_scope(scope_);
    value = text_value(captured(statement.body));
    Scope* const scope = std::exchange(scope_, scope_->parent);
    close_scope(scope);
    if (statement.filter != nullptr) {
      value = evaluate_filter(*statement.filter, &value);
    }
  }
  located(statement.location, [&] { assign(statement.target, value); });
}

Value Interpreter::macro_value(const MacroSyntax& macro) {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent) {
    scope->captured = true;
  }
  return Value(std::shared_ptr<const Callable>(std::make_shared<Macro>(macro, scope_)));
}

void Interpreter::execute_call_block(const Statement& statement) {
  const Value caller = macro_value(*statement.macro);
  write(to_text(evaluate_call(*statement.expression, &caller)));
}

Interpreter::Flow Interpreter::execute_scoped(const Statement& statement) {
  Values values;
  for (const auto& assignment : statement.assignments) {
    values.push_back(evaluate(*assignment.second));
  }
  scope_ = open_scope(scope_);
  for (size_t i = 0; i < values.size(); ++i) {
    located(statement.location, [&] { assign(statement.assignments[i].first, values[i]); });
  }
  const Flow flow = execute(statement.body);
  Scope* const scope = std::exchange(scope_, scope_->parent);
  close_scope(scope);
  return flow;
}

void Interpreter::execute_filter_block(const Statement& statement) {
  scope_ = open_scope(scope_);
  const Value block_text = text_value(captured(statement.body));
  Scope* const scope = std::exchange(scope_, scope_->parent);
  close_scope(scope);
  write(to_text(evaluate_filter(*statement.expression, &block_text)));
}

}  // namespace octet::jinja
