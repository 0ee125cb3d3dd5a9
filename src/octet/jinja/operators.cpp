// What operators, subscripts and attributes do to values.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "octet/base/utf8.h"
#include "octet/jinja/interpreter.h"

namespace octet::jinja {
namespace {

Error invalid(std::string message) {
  return {ErrorKind::kInvalidArgument, std::move(message)};
}

Error overflow() {
  return invalid("a number does not fit 64 bits");
}

int64_t floor_quotient(int64_t a, int64_t b) {
  if (b == -1) {
    int64_t out = 0;
    if (__builtin_sub_overflow(int64_t{0}, a, &out)) {
      throw overflow();
    }
    return out;
  }
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

Value integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1 || base == -1) {
    return Value::integer(exponent == 0 ? 1 : exponent % 2 == 0 ? base * base : base);
  }
  int64_t out = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(out, base, &out)) {
      throw overflow();
    }
  }
  return Value::integer(out);
}

Value integer_operation(std::string_view name, int64_t a, int64_t b) {
  int64_t out = 0;
  const bool overflowed = name == "+"   ? __builtin_add_overflow(a, b, &out)
                          : name == "-" ? __builtin_sub_overflow(a, b, &out)
                          : name == "*" ? __builtin_mul_overflow(a, b, &out)
                                        : false;
  if (overflowed) {
    throw overflow();
  }
  if (name == "**") {
    return integer_power(a, b);
  }
  if (name == "/" || name == "//" || name == "%") {
    if (b == 0) {
      throw invalid("division by zero");
    }
    if (name == "/") {
      return Value::real(static_cast<double>(a) / static_cast<double>(b));
    }
    const int64_t quotient = floor_quotient(a, b);
    out = name == "//" ? quotient : b == -1 ? 0 : a - quotient * b;
  }
  return Value::integer(out);
}

Value real_operation(std::string_view name, double a, double b) {
  if (name == "+" || name == "-" || name == "*") {
    return Value::real(name == "+" ? a + b : name == "-" ? a - b : a * b);
  }
  if (name == "**") {
    return Value::real(std::pow(a, b));
  }
  if (b == 0.0) {
    throw invalid("division by zero");
  }
  if (name == "/") {
    return Value::real(a / b);
  }
  // As Python divides: the rest has the sign of the divisor, also when it is zero.
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0.0 && (rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1.0;
  }
  if (name == "%") {
    return Value::real(rest != 0.0 ? rest : std::copysign(0.0, b));
  }
  return Value::real(quotient != 0.0 ? std::round(quotient) : std::copysign(0.0, a / b));
}

Value repeated(Interpreter& interpreter, const Value& value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  const Text* text = value.as_text();
  const auto size =
      static_cast<int64_t>(text != nullptr ? text->size() : value.as_sequence()->items.size());
  int64_t total = 0;
  if (__builtin_mul_overflow(size, count, &total)) {
    throw overflow();
  }
  interpreter.charge(text != nullptr ? total / 64 + count : total + count);
  if (text != nullptr) {
    Text out;
    for (int64_t i = 0; i < count; ++i) {
      out.append(*text);
    }
    return interpreter.text_value(std::move(out));
  }
  Values items;
  for (int64_t i = 0; i < count; ++i) {
    const Values& once = value.as_sequence()->items;
    items.insert(items.end(), once.begin(), once.end());
  }
  return value.as_sequence()->tuple ? Value::tuple(std::move(items))
                                    : Value::list(std::move(items));
}

Value joined(Interpreter& interpreter, const Value& a, const Value& b) {
  if (a.is_text() && b.is_text()) {
    Text out = *a.as_text();
    out.append(*b.as_text());
    return interpreter.text_value(std::move(out));
  }
  Values items = a.as_sequence()->items;
  const Values& more = b.as_sequence()->items;
  items.insert(items.end(), more.begin(), more.end());
  interpreter.charge(static_cast<int64_t>(items.size()));
  return a.as_sequence()->tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
}

bool joins(const Value& a, const Value& b) {
  return (a.is_text() && b.is_text()) ||
         (a.as_sequence() != nullptr && b.as_sequence() != nullptr &&
          a.as_sequence()->tuple == b.as_sequence()->tuple);
}

bool repeats(const Value& a, const Value& b) {
  return (a.is_text() || a.as_sequence() != nullptr) && (b.is_integer() || b.is_boolean());
}

/// The indices of a slice, as Python counts them.
std::vector<size_t> slice_indices(
    size_t size, const Value& begin, const Value& end, const Value& step
) {
  const auto part = [](const Value& value, int64_t missing) {
    if (value.is_none()) {
      return missing;
    }
    if (!value.is_integer() && !value.is_boolean()) {
      throw invalid(fmt::format("a slice needs integers, not a {}", type_name(value)));
    }
    return value.integer();
  };
  const auto length = static_cast<int64_t>(size);
  const int64_t stride = part(step, 1);
  if (stride == 0) {
    throw invalid("the step of a slice is zero");
  }
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? length : length - 1;
  const auto placed = [&](const Value& value, int64_t missing) {
    const int64_t at = part(value, missing);
    return value.is_none() ? missing : std::clamp(at < 0 ? at + length : at, low, high);
  };
  const int64_t from = placed(begin, stride > 0 ? low : high);
  const int64_t to = placed(end, stride > 0 ? high : low);
  std::vector<size_t> out;
  for (int64_t at = from; stride > 0 ? at < to : at > to;) {
    out.push_back(static_cast<size_t>(at));
    if (__builtin_add_overflow(at, stride, &at)) {
      break;
    }
  }
  return out;
}

Value missing_item(const Value& object, const Value& key) {
  return Value::undefined(
      fmt::format("a {} has no item {}", type_name(object), to_repr(key).bytes())
  );
}

Value loop_attribute(const LoopState& loop, std::string_view name) {
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(loop.items.size());
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"index", index + 1},
      {"index0", index},
      {"revindex", length - index},
      {"revindex0", length - index - 1},
      {"length", length},
      {"depth", loop.depth + 1},
      {"depth0", loop.depth}};
  for (const auto& [key, value] : numbers) {
    if (key == name) {
      return Value::integer(value);
    }
  }
  if (name == "first" || name == "last") {
    return Value::boolean(name == "first" ? index == 0 : index + 1 == length);
  }
  if (name == "previtem") {
    return index > 0 ? loop.items[loop.index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? loop.items[loop.index + 1]
                              : Value::undefined("there is no next item");
  }
  return Value::undefined(fmt::format("a loop has no attribute '{}'", name));
}

}  // namespace

Value apply_operator(
    Interpreter& interpreter, std::string_view name, const Value& a, const Value& b
) {
  interpreter.charge(1);
  if (name == "~") {
    Text out = to_text(a);
    out.append(to_text(b));
    return interpreter.text_value(std::move(out));
  }
  if (a.is_undefined() || b.is_undefined()) {
    throw invalid(a.is_undefined() ? a.what() : b.what());
  }
  if (a.is_number() && b.is_number()) {
    return a.is_real() || b.is_real() ? real_operation(name, a.real(), b.real())
                                      : integer_operation(name, a.integer(), b.integer());
  }
  if (name == "+" && joins(a, b)) {
    return joined(interpreter, a, b);
  }
  if (name == "*" && repeats(a, b)) {
    return repeated(interpreter, a, b.integer());
  }
  if (name == "*" && repeats(b, a)) {
    return repeated(interpreter, b, a.integer());
  }
  if (name == "%" && a.is_text()) {
    return interpreter.text_value(format_percent(*a.as_text(), b));
  }
  throw invalid(fmt::format("'{}' does not work on a {} and a {}", name, type_name(a), type_name(b))
  );
}

Value slice(
    Interpreter& interpreter,
    const Value& value,
    const Value& begin,
    const Value& end,
    const Value& step
) {
  if (const Sequence* sequence = value.as_sequence()) {
    Values items;
    for (const size_t at : slice_indices(sequence->items.size(), begin, end, step)) {
      items.push_back(sequence->items[at]);
    }
    interpreter.charge(static_cast<int64_t>(items.size()));
    return sequence->tuple ? Value::tuple(std::move(items)) : Value::list(std::move(items));
  }
  const Text* text = value.as_text();
  if (text == nullptr) {
    throw invalid(
        value.is_undefined() ? value.what() : fmt::format("a {} cannot be sliced", type_name(value))
    );
  }
  interpreter.charge(static_cast<int64_t>(text->size()) / 16);
  const std::vector<size_t> starts = character_starts(text->view());
  Text out;
  for (const size_t at : slice_indices(starts.size() - 1, begin, end, step)) {
    out.append(*text, starts[at], starts[at + 1]);
  }
  return interpreter.text_value(std::move(out));
}

Value Interpreter::attribute(const Value& object, std::string_view name) const {
  if (object.is_undefined()) {
    throw invalid(object.what());
  }
  if (Namespace* space = object.as_namespace()) {
    const Value* value = space->find(name);
    return value != nullptr ? *value
                            : Value::undefined(fmt::format("the namespace has no '{}'", name));
  }
  Value method = bound_method(object, name);
  if (!method.is_undefined()) {
    return method;
  }
  if (const LoopState* loop = object.as_loop()) {
    return loop_attribute(*loop, name);
  }
  if (const Dict* dict = object.as_dict()) {
    if (const Value* value = dict->find(name)) {
      return *value;
    }
  }
  return Value::undefined(fmt::format("a {} has no attribute '{}'", type_name(object), name));
}

Value Interpreter::item(const Value& object, const Value& key) const {
  if (object.is_undefined()) {
    throw invalid(object.what());
  }
  if (const Dict* dict = object.as_dict()) {
    if (const Value* value = dict->find(key)) {
      return *value;
    }
  }
  const bool index = key.is_integer() || key.is_boolean();
  const Sequence* sequence = object.as_sequence();
  const Text* text = object.as_text();
  if (index && (sequence != nullptr || text != nullptr)) {
    const std::vector<size_t> starts =
        text != nullptr ? character_starts(text->view()) : std::vector<size_t>();
    const auto size =
        static_cast<int64_t>(text != nullptr ? starts.size() - 1 : sequence->items.size());
    const int64_t at = key.integer() < 0 ? key.integer() + size : key.integer();
    if (at < 0 || at >= size) {
      return missing_item(object, key);
    }
    const auto place = static_cast<size_t>(at);
    return text != nullptr ? Value::text(text->cut(starts[place], starts[place + 1]))
                           : sequence->items[place];
  }
  if (const Text* name = key.as_text()) {
    return attribute(object, name->view());
  }
  return missing_item(object, key);
}

Values Interpreter::iterate(const Value& value) {
  Values out;
  if (const Sequence* sequence = value.as_sequence()) {
    out = sequence->items;
  } else if (const Dict* dict = value.as_dict()) {
    for (const Entry& entry : dict->entries()) {
      out.push_back(entry.first);
    }
  } else if (const Text* text = value.as_text()) {
    const std::vector<size_t> starts = character_starts(text->view());
    charge(static_cast<int64_t>(starts.size()));
    for (size_t i = 0; i + 1 < starts.size(); ++i) {
      out.push_back(Value::text(text->cut(starts[i], starts[i + 1])));
    }
  } else if (!value.is_undefined()) {
    throw invalid(fmt::format("a {} has no items to go through", type_name(value)));
  }
  charge(static_cast<int64_t>(out.size()));
  return out;
}

}  // namespace octet::jinja
