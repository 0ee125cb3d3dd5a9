// What a template can call: functions of the language, macros, methods bound to a value. Not for
// filters and tests, which have names of their own (filters.h). Invariant: a callable keeps what it
// was bound to, and nothing of a rendering beyond it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "octet/jinja/value.h"

namespace octet::jinja {

class Interpreter;

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> keywords;

  /// The argument at a position or of a name; null when it was not given.
  const Value* find(size_t position, std::string_view name) const;
  /// Given and neither undefined nor none.
  const Value* given(size_t position, std::string_view name) const;
  // The argument in a type, or the default when it was not given. Throw Error(kInvalidArgument).
  int64_t integer(size_t position, std::string_view name, int64_t missing) const;
  bool boolean(size_t position, std::string_view name, bool missing) const;
  Text text(size_t position, std::string_view name, std::string_view missing) const;
  /// Throws Error(kInvalidArgument) naming the argument.
  const Value& required(size_t position, std::string_view name) const;
};

class Callable {
 public:
  explicit Callable(std::string name) : name_(std::move(name)) {}
  virtual ~Callable() = default;
  virtual Value call(Interpreter& interpreter, const Arguments& arguments) const = 0;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// A method that every value of a type has, bound to `self`; undefined when there is none. Methods
/// that would change a list or dict in place are refused by name when called.
Value bound_method(const Value& self, std::string_view name);

/// Python's "text % arguments".
Text format_percent(const Text& format, const Value& arguments);

}  // namespace octet::jinja
