// Values of the template language: Python's, as far as templates need them. Lists, tuples, dicts
// and strings never change once made, so values share them and cannot form cycles; namespaces can,
// and belong to a rendering. Not for evaluating (interpreter.h). Invariant: no value is nested
// deeper than kMaxValueDepth.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "octet/jinja/text.h"

namespace octet::jinja {

inline constexpr int kMaxValueDepth = 200;

class Value;
class Dict;
class Callable;
using Values = std::vector<Value>;
using Entry = std::pair<Value, Value>;

/// The absence of something; `what` says of what, for messages.
struct Undefined {
  std::shared_ptr<const std::string> what;
};
struct None {};
struct Sequence;
struct Namespace;
struct LoopState;

class Value {
 public:
  using Storage = std::variant<
      Undefined,
      None,
      bool,
      int64_t,
      double,
      std::shared_ptr<const Text>,
      std::shared_ptr<const Sequence>,
      std::shared_ptr<const Dict>,
      std::shared_ptr<Namespace>,
      std::shared_ptr<LoopState>,
      std::shared_ptr<const Callable>>;

  Value() : storage_(None{}) {}
  static Value undefined(std::string what);
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value real(double value);
  static Value text(Text text);
  static Value text(std::string_view bytes, Origin origin = Origin::kTemplate);
  static Value list(Values items);
  static Value tuple(Values items);
  static Value dict(std::vector<Entry> entries);
  explicit Value(std::shared_ptr<Namespace> object) : storage_(std::move(object)) {}
  explicit Value(std::shared_ptr<LoopState> object) : storage_(std::move(object)) {}
  explicit Value(std::shared_ptr<const Callable> object) : storage_(std::move(object)) {}

  bool is_undefined() const { return std::holds_alternative<Undefined>(storage_); }
  bool is_none() const { return std::holds_alternative<None>(storage_); }
  bool is_boolean() const { return std::holds_alternative<bool>(storage_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(storage_); }
  bool is_real() const { return std::holds_alternative<double>(storage_); }
  /// Booleans count as numbers, as in Python.
  bool is_number() const { return is_boolean() || is_integer() || is_real(); }
  bool is_text() const { return as_text() != nullptr; }

  // Null when the value is of another type.
  const Text* as_text() const;
  const Sequence* as_sequence() const;
  const Dict* as_dict() const;
  Namespace* as_namespace() const;
  LoopState* as_loop() const;
  const Callable* as_callable() const;

  bool boolean() const { return std::get<bool>(storage_); }
  /// Of an integer or boolean.
  int64_t integer() const;
  /// Of a number.
  double real() const;
  const std::string& what() const;  // of an undefined value

  bool truthy() const;
  int depth() const;
  const Storage& storage() const { return storage_; }

 private:
  template <typename T>
  explicit Value(T value, int /*tag*/) : storage_(std::move(value)) {}
  Storage storage_;
};

struct Sequence {
  Values items;
  bool tuple = false;
  int depth = 1;
};

/// Key and value pairs in the order of insertion.
class Dict {
 public:
  /// Later entries of an equal key replace the value of the first. Throws Error(kInvalidArgument)
  /// for a key that is a list or a dict.
  explicit Dict(std::vector<Entry> entries);
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }
  int depth() const { return depth_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;  // empty while there are few
  int depth_ = 1;
};

/// What namespace(...) makes: the one thing that templates can change.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  Value* find(std::string_view name);
};

bool equal(const Value& a, const Value& b);
/// Negative, zero or positive. Throws Error(kInvalidArgument) when the types have no order.
int compare(const Value& a, const Value& b);
/// `x in container`. Throws for containers that are none.
bool contains(const Value& container, const Value& item);

/// "string", "list", ...: as Python names types.
std::string_view type_name(const Value& value);

/// Python's str() and repr().
Text to_text(const Value& value);
Text to_repr(const Value& value);
std::string real_repr(double value);

struct JsonStyle {
  int indent = -1;  // negative: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
  bool ensure_ascii = false;
};
/// Python's json.dumps. Throws Error(kInvalidArgument) for what is not JSON.
Text to_json(const Value& value, const JsonStyle& style);

}  // namespace octet::jinja
