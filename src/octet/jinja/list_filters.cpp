// Filters over lists and dicts, filters by name, and tests.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "octet/base/utf8.h"
#include "octet/jinja/filters.h"
#include "octet/jinja/interpreter.h"
#include "octet/jinja/letters.h"
#include "octet/jinja/text_operations.h"

namespace octet::jinja {
namespace {

Error invalid(std::string message) {
  return {ErrorKind::kInvalidArgument, std::move(message)};
}

/// Texts compare without case unless asked otherwise.
Value sort_key(const Value& value, bool case_sensitive) {
  return value.is_text() && !case_sensitive ? Value::text(lower(*value.as_text())) : value;
}

/// As Python has it: lists and dicts are not, nor is a tuple that holds one.
bool is_hashable(const Value& value) {
  const Sequence* sequence = value.as_sequence();
  return value.as_dict() == nullptr &&
         (sequence == nullptr ||
          (sequence->tuple &&
           std::all_of(sequence->items.begin(), sequence->items.end(), is_hashable)));
}

/// "a.b.0" of an item, as filters name attributes.
Value dotted_attribute(const Interpreter& interpreter, Value value, const Value& name) {
  if (!name.is_text()) {
    return interpreter.item(value, name);
  }
  for (const Text& part : split_at(*name.as_text(), ".", -1)) {
    const bool number = !part.empty() &&
                        part.bytes().find_first_not_of("0123456789") == std::string::npos &&
                        part.size() < 10;
    value = interpreter.item(
        value, number ? Value::integer(std::stoll(part.bytes())) : Value::text(part)
    );
  }
  return value;
}

/// Stable sort of items by keys.
Values sorted_by(Interpreter& interpreter, Values items, const Values& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    interpreter.charge(1);
    return reverse ? compare(keys[b], keys[a]) < 0 : compare(keys[a], keys[b]) < 0;
  });
  Values out;
  for (const size_t i : order) {
    out.push_back(std::move(items[i]));
  }
  return out;
}

Value length(Interpreter& /*interpreter*/, const Value& value, const Arguments& /*arguments*/) {
  if (const Sequence* sequence = value.as_sequence()) {
    return Value::integer(static_cast<int64_t>(sequence->items.size()));
  }
  if (const Dict* dict = value.as_dict()) {
    return Value::integer(static_cast<int64_t>(dict->entries().size()));
  }
  if (const Text* text = value.as_text()) {
    return Value::integer(static_cast<int64_t>(character_starts(text->view()).size()) - 1);
  }
  if (value.is_undefined()) {
    return Value::integer(0);
  }
  throw invalid(fmt::format("a {} has no length", type_name(value)));
}

Value default_value(Interpreter& /*interpreter*/, const Value& value, const Arguments& arguments) {
  const Value* other = arguments.find(0, "default_value");
  const bool falsy = arguments.boolean(1, "boolean", false) && !value.truthy();
  return !value.is_undefined() && !falsy ? value : other != nullptr ? *other : Value::text("");
}

Value dictsort(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Dict* dict = value.as_dict();
  if (dict == nullptr) {
    throw invalid(
        value.is_undefined() ? value.what()
                             : fmt::format("dictsort needs a dict, not a {}", type_name(value))
    );
  }
  const bool case_sensitive = arguments.boolean(0, "case_sensitive", false);
  const bool by_value = arguments.text(1, "by", "key").bytes() == "value";
  Values items;
  Values keys;
  for (const auto& [key, item] : dict->entries()) {
    items.push_back(Value::tuple({key, item}));
    keys.push_back(sort_key(by_value ? item : key, case_sensitive));
  }
  return Value::list(
      sorted_by(interpreter, std::move(items), keys, arguments.boolean(2, "reverse", false))
  );
}

Value sort(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  Values items = interpreter.iterate(value);
  const bool case_sensitive = arguments.boolean(1, "case_sensitive", false);
  const Value* attribute = arguments.given(2, "attribute");
  Values keys;
  for (const Value& item : items) {
    keys.push_back(sort_key(
        attribute == nullptr ? item : dotted_attribute(interpreter, item, *attribute),
        case_sensitive
    ));
  }
  return Value::list(
      sorted_by(interpreter, std::move(items), keys, arguments.boolean(0, "reverse", false))
  );
}

template <int kSign>
Value extreme(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const bool case_sensitive = arguments.boolean(0, "case_sensitive", false);
  const Value* attribute = arguments.given(1, "attribute");
  const auto key = [&](const Value& item) {
    return sort_key(
        attribute == nullptr ? item : dotted_attribute(interpreter, item, *attribute),
        case_sensitive
    );
  };
  const Values items = interpreter.iterate(value);
  if (items.empty()) {
    return Value::undefined("the list is empty");
  }
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    best = compare(key(items[i]), key(items[best])) * kSign > 0 ? i : best;
  }
  return items[best];
}

Value unique(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const bool case_sensitive = arguments.boolean(0, "case_sensitive", false);
  const Value* attribute = arguments.given(1, "attribute");
  Values kept;
  Values keys;
  for (Value& item : interpreter.iterate(value)) {
    Value key = sort_key(
        attribute == nullptr ? item : dotted_attribute(interpreter, item, *attribute),
        case_sensitive
    );
    if (!is_hashable(key)) {
      throw invalid(fmt::format("a {} cannot be told apart by unique", type_name(key)));
    }
    interpreter.charge(static_cast<int64_t>(keys.size()));
    if (std::none_of(keys.begin(), keys.end(), [&](const Value& k) { return equal(k, key); })) {
      keys.push_back(std::move(key));
      kept.push_back(std::move(item));
    }
  }
  return Value::list(std::move(kept));
}

Value first(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  const Values items = interpreter.iterate(value);
  return items.empty() ? Value::undefined("there is no first item, the list is empty")
                       : items.front();
}

Value last(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  const Values items = interpreter.iterate(value);
  return items.empty() ? Value::undefined("there is no last item, the list is empty")
                       : items.back();
}

Value list(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  return Value::list(interpreter.iterate(value));
}

Value reverse(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  Values items = interpreter.iterate(value);
  std::reverse(items.begin(), items.end());
  return value.is_text() ? interpreter.text_value(joined_texts(interpreter, items, Text()))
                         : Value::list(std::move(items));
}

Value join(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  Values items = interpreter.iterate(value);
  if (const Value* attribute = arguments.given(1, "attribute")) {
    for (Value& item : items) {
      item = dotted_attribute(interpreter, item, *attribute);
    }
  }
  return interpreter.text_value(joined_texts(interpreter, items, arguments.text(0, "d", "")));
}

Value items(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  if (value.is_undefined()) {
    return Value::list({});
  }
  if (value.as_dict() == nullptr) {
    throw invalid(fmt::format("items needs a dict, not a {}", type_name(value)));
  }
  return interpreter.call(bound_method(value, "items"), {});
}

Value sum(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Value* attribute = arguments.given(0, "attribute");
  const Value* start = arguments.find(1, "start");
  Value total = start != nullptr ? *start : Value::integer(0);
  for (const Value& item : interpreter.iterate(value)) {
    total = apply_operator(
        interpreter,
        "+",
        total,
        attribute == nullptr ? item : dotted_attribute(interpreter, item, *attribute)
    );
  }
  return total;
}

Value attr(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return interpreter.attribute(value, to_text(arguments.required(0, "name")).view());
}

Value batch(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const int64_t size = arguments.integer(0, "linecount", 1);
  if (size < 1) {
    throw invalid("batch needs a positive size");
  }
  Values out;
  Values line;
  for (Value& item : interpreter.iterate(value)) {
    line.push_back(std::move(item));
    if (static_cast<int64_t>(line.size()) == size) {
      out.push_back(Value::list(std::exchange(line, {})));
    }
  }
  if (!line.empty()) {
    if (const Value* filler = arguments.given(1, "fill_with")) {
      interpreter.charge(size);
      line.resize(static_cast<size_t>(size), *filler);
    }
    out.push_back(Value::list(std::move(line)));
  }
  return Value::list(std::move(out));
}

/// The arguments behind the first `count` positional ones.
Arguments rest_of(const Arguments& arguments, size_t count) {
  Arguments out = arguments;
  out.positional.erase(
      out.positional.begin(),
      out.positional.begin() + static_cast<std::ptrdiff_t>(std::min(count, out.positional.size()))
  );
  return out;
}

Value map(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  Values out;
  const Value* attribute = arguments.positional.empty() ? arguments.find(0, "attribute") : nullptr;
  const Value* missing = arguments.find(SIZE_MAX, "default");
  const Values items = interpreter.iterate(value);
  if (attribute != nullptr) {
    for (const Value& item : items) {
      Value found = dotted_attribute(interpreter, item, *attribute);
      out.push_back(found.is_undefined() && missing != nullptr ? *missing : std::move(found));
    }
    return Value::list(std::move(out));
  }
  const std::string name = to_text(arguments.required(0, "filter")).bytes();
  const Arguments rest = rest_of(arguments, 1);
  for (const Value& item : items) {
    out.push_back(apply_filter(interpreter, name, item, rest));
  }
  return Value::list(std::move(out));
}

template <bool kKeep, bool kOfAttribute>
Value select(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  constexpr size_t kName = kOfAttribute ? 1 : 0;
  const bool tested = arguments.positional.size() > kName;
  const std::string test = tested ? to_text(arguments.positional[kName]).bytes() : "";
  const Arguments rest = rest_of(arguments, kName + 1);
  Values out;
  for (Value& item : interpreter.iterate(value)) {
    const Value subject =
        kOfAttribute ? dotted_attribute(interpreter, item, arguments.required(0, "attribute"))
                     : item;
    const bool holds = tested ? apply_test(interpreter, test, subject, rest) : subject.truthy();
    if (holds == kKeep) {
      out.push_back(std::move(item));
    }
  }
  return Value::list(std::move(out));
}

constexpr NamedFilter kFilters[] = {
    {"attr", attr},
    {"batch", batch},
    {"count", length},
    {"d", default_value},
    {"default", default_value},
    {"dictsort", dictsort},
    {"first", first},
    {"items", items},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", extreme<1>},
    {"min", extreme<-1>},
    {"reject", select<false, false>},
    {"rejectattr", select<false, true>},
    {"reverse", reverse},
    {"select", select<true, false>},
    {"selectattr", select<true, true>},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

// Tests.

using Test = bool (*)(Interpreter&, const Value&, const Arguments&);

int64_t whole(const Value& value) {
  if (value.is_integer() || value.is_boolean()) {
    return value.integer();
  }
  throw invalid(fmt::format("needs an integer, not a {}", type_name(value)));
}

template <Text (*kChange)(const Text&)>
bool has_case(Interpreter& /*interpreter*/, const Value& value, const Arguments& /*arguments*/) {
  const Text text = to_text(value);
  return upper(text).bytes() != lower(text).bytes() && kChange(text).bytes() == text.bytes();
}

struct NamedTest {
  std::string_view name;
  Test test;
};

const NamedTest kTests[] = {
    {"defined", [](Interpreter&, const Value& v, const Arguments&) { return !v.is_undefined(); }},
    {"undefined", [](Interpreter&, const Value& v, const Arguments&) { return v.is_undefined(); }},
    {"none", [](Interpreter&, const Value& v, const Arguments&) { return v.is_none(); }},
    {"boolean", [](Interpreter&, const Value& v, const Arguments&) { return v.is_boolean(); }},
    {"true",
     [](Interpreter&, const Value& v, const Arguments&) { return v.is_boolean() && v.boolean(); }},
    {"false",
     [](Interpreter&, const Value& v, const Arguments&) { return v.is_boolean() && !v.boolean(); }},
    {"integer", [](Interpreter&, const Value& v, const Arguments&) { return v.is_integer(); }},
    {"float", [](Interpreter&, const Value& v, const Arguments&) { return v.is_real(); }},
    {"number", [](Interpreter&, const Value& v, const Arguments&) { return v.is_number(); }},
    {"string", [](Interpreter&, const Value& v, const Arguments&) { return v.is_text(); }},
    {"mapping",
     [](Interpreter&, const Value& v, const Arguments&) { return v.as_dict() != nullptr; }},
    {"sequence",
     [](Interpreter&, const Value& v, const Arguments&) {
       return v.is_text() || v.is_undefined() || v.as_sequence() != nullptr ||
              v.as_dict() != nullptr;
     }},
    {"iterable",
     [](Interpreter&, const Value& v, const Arguments&) {
       return v.is_text() || v.is_undefined() || v.as_sequence() != nullptr ||
              v.as_dict() != nullptr;
     }},
    {"callable",
     [](Interpreter&, const Value& v, const Arguments&) {
       return v.as_callable() != nullptr || v.as_loop() != nullptr;
     }},
    {"even", [](Interpreter&, const Value& v, const Arguments&) { return whole(v) % 2 == 0; }},
    {"odd", [](Interpreter&, const Value& v, const Arguments&) { return whole(v) % 2 != 0; }},
    {"divisibleby",
     [](Interpreter& i, const Value& v, const Arguments& a) {
       return apply_operator(i, "%", v, a.required(0, "num")).real() == 0.0;
     }},
    {"in",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return contains(a.required(0, "seq"), v);
     }},
    {"eq",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return equal(v, a.required(0, "other"));
     }},
    {"ne",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return !equal(v, a.required(0, "other"));
     }},
    {"lt",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return compare(v, a.required(0, "other")) < 0;
     }},
    {"le",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return compare(v, a.required(0, "other")) <= 0;
     }},
    {"gt",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return compare(v, a.required(0, "other")) > 0;
     }},
    {"ge",
     [](Interpreter&, const Value& v, const Arguments& a) {
       return compare(v, a.required(0, "other")) >= 0;
     }},
    {"sameas",
     [](Interpreter&, const Value& v, const Arguments& a) {
       const Value& other = a.required(0, "other");
       return v.storage().index() == other.storage().index() && equal(v, other);
     }},
    {"upper", has_case<upper>},
    {"lower", has_case<lower>},
    {"filter",
     [](Interpreter&, const Value& v, const Arguments&) {
       const std::string name = to_text(v).bytes();
       return find_text_filter(name) != nullptr || find_list_filter(name) != nullptr;
     }},
};

/// Longer names of the same tests.
std::string_view canonical_test(std::string_view name) {
  const std::pair<std::string_view, std::string_view> names[] = {
      {"equalto", "eq"},
      {"==", "eq"},
      {"!=", "ne"},
      {"lessthan", "lt"},
      {"<", "lt"},
      {"<=", "le"},
      {"greaterthan", "gt"},
      {">", "gt"},
      {">=", "ge"}};
  for (const auto& [other, canonical] : names) {
    if (other == name) {
      return canonical;
    }
  }
  return name;
}

}  // namespace

const NamedFilter* find_list_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const NamedFilter& one) {
        return one.name == name;
      });
  return found == std::end(kFilters) ? nullptr : found;
}

Value apply_filter(
    Interpreter& interpreter, std::string_view name, const Value& value, const Arguments& arguments
) {
  const NamedFilter* filter = find_text_filter(name);
  filter = filter != nullptr ? filter : find_list_filter(name);
  if (filter == nullptr) {
    throw Error(ErrorKind::kUnsupported, fmt::format("there is no filter '{}'", name));
  }
  interpreter.charge(1);
  return filter->function(interpreter, value, arguments);
}

bool apply_test(
    Interpreter& interpreter, std::string_view name, const Value& value, const Arguments& arguments
) {
  const std::string_view canonical = canonical_test(name);
  for (const NamedTest& test : kTests) {
    if (test.name == canonical) {
      interpreter.charge(1);
      return test.test(interpreter, value, arguments);
    }
  }
  throw Error(ErrorKind::kUnsupported, fmt::format("there is no test '{}'", name));
}

}  // namespace octet::jinja
