// The methods of strings, lists and dicts that templates call, as Python has them.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "octet/base/utf8.h"
#include "octet/jinja/interpreter.h"
#include "octet/jinja/letters.h"
#include "octet/jinja/text_operations.h"

namespace octet::jinja {
namespace {

using Method = Value (*)(Interpreter&, const Value&, const Arguments&);

Error invalid(std::string message) {
  return {ErrorKind::kInvalidArgument, std::move(message)};
}

class BoundMethod : public Callable {
 public:
  BoundMethod(std::string_view name, Value self, Method method)
      : Callable(std::string(name)), self_(std::move(self)), method_(method) {}
  Value call(Interpreter& interpreter, const Arguments& arguments) const override {
    return method_(interpreter, self_, arguments);
  }

 private:
  Value self_;
  Method method_;
};

class ForbiddenMethod : public Callable {
 public:
  using Callable::Callable;
  Value call(Interpreter& /*interpreter*/, const Arguments& /*arguments*/) const override {
    throw invalid(
        fmt::format("'{}' would change a value in place, which templates may not do", name())
    );
  }
};

const Text& text_of(const Value& value) {
  return *value.as_text();
}

template <Sides kSides>
Value strip(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Text set = arguments.text(0, "chars", "");
  if (arguments.given(0, "chars") != nullptr && set.empty()) {
    return self;
  }
  const ByteRange range = stripped(text_of(self).view(), kSides, set.view());
  return interpreter.text_value(text_of(self).cut(range.begin, range.end));
}

template <Text (*kChange)(const Text&)>
Value changed(Interpreter& interpreter, const Value& self, const Arguments& /*arguments*/) {
  return interpreter.text_value(kChange(text_of(self)));
}

template <Value (*kSplit)(Interpreter&, const Text&, const Arguments&)>
Value split(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return kSplit(interpreter, text_of(self), arguments);
}

Value split_left(Interpreter& interpreter, const Text& text, const Arguments& arguments) {
  const Text separator = arguments.text(0, "sep", "");
  const int64_t most = arguments.integer(1, "maxsplit", -1);
  if (arguments.given(0, "sep") == nullptr) {
    return text_list(interpreter, split_at_space(text, most));
  }
  return text_list(interpreter, split_at(text, separator.view(), most));
}

Value split_right(Interpreter& interpreter, const Text& text, const Arguments& arguments) {
  const Text separator = arguments.text(0, "sep", "");
  const int64_t most = arguments.integer(1, "maxsplit", -1);
  if (arguments.given(0, "sep") == nullptr) {
    if (most >= 0) {
      throw Error(ErrorKind::kUnsupported, "rsplit with a limit needs a separator");
    }
    return text_list(interpreter, split_at_space(text, -1));
  }
  return text_list(interpreter, split_at_from_right(text, separator.view(), most));
}

Value split_lines(Interpreter& interpreter, const Text& text, const Arguments& arguments) {
  return text_list(interpreter, lines_of(text, arguments.boolean(0, "keepends", false)));
}

template <bool kEnd>
Value has_affix(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  const Value& affix = arguments.required(0, "prefix");
  const std::string_view text = text_of(self).view();
  const auto fits = [&](const Value& one) {
    const Text* part = one.as_text();
    if (part == nullptr) {
      throw invalid(fmt::format("a string cannot begin or end with a {}", type_name(one)));
    }
    return kEnd ? text.ends_with(part->view()) : text.starts_with(part->view());
  };
  if (const Sequence* several = affix.as_sequence(); several != nullptr && several->tuple) {
    return Value::boolean(std::any_of(several->items.begin(), several->items.end(), fits));
  }
  return Value::boolean(fits(affix));
}

template <bool kEnd>
Value remove_affix(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  const Text affix = arguments.text(0, "prefix", "");
  const Text& text = text_of(self);
  const size_t rest = text.size() - std::min(affix.size(), text.size());
  if (kEnd ? text.view().ends_with(affix.view()) : text.view().starts_with(affix.view())) {
    return Value::text(kEnd ? text.cut(0, rest) : text.cut(affix.size(), text.size()));
  }
  return self;
}

Value replace(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  return interpreter.text_value(replaced(
      interpreter,
      text_of(self),
      to_text(arguments.required(0, "old")),
      to_text(arguments.required(1, "new")),
      arguments.integer(2, "count", -1)
  ));
}

template <bool kRight, bool kMustExist>
Value find(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  const Text part = to_text(arguments.required(0, "sub"));
  const std::string_view text = text_of(self).view();
  const size_t at = kRight ? text.rfind(part.view()) : text.find(part.view());
  if (at == std::string_view::npos) {
    if (kMustExist) {
      throw invalid("the string does not hold what index looks for");
    }
    return Value::integer(-1);
  }
  return Value::integer(static_cast<int64_t>(character_starts(text.substr(0, at)).size()) - 1);
}

Value count_text(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  const Text part = to_text(arguments.required(0, "sub"));
  if (part.empty()) {
    return Value::integer(static_cast<int64_t>(character_starts(text_of(self).view()).size()));
  }
  const auto pieces = static_cast<int64_t>(split_at(text_of(self), part.view(), -1).size());
  return Value::integer(pieces - 1);
}

Value join(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Values items = interpreter.iterate(arguments.required(0, "iterable"));
  const auto text =
      std::find_if(items.begin(), items.end(), [](const Value& v) { return !v.is_text(); });
  if (text != items.end()) {
    throw invalid(fmt::format("join needs strings, not a {}", type_name(*text)));
  }
  return interpreter.text_value(joined_texts(interpreter, items, text_of(self)));
}

template <bool (*kIs)(char32_t)>
Value all_characters(Interpreter& /*interpreter*/, const Value& self, const Arguments& /*args*/) {
  const std::string_view text = text_of(self).view();
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    if (step.status != Utf8Status::kValid || !kIs(step.code_point)) {
      return Value::boolean(false);
    }
    at += static_cast<size_t>(step.length);
  }
  return Value::boolean(!text.empty());
}

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_letter_or_digit(char32_t c) {
  return is_letter(c) || is_digit(c);
}

template <Text (*kChange)(const Text&)>
Value has_case(Interpreter& /*interpreter*/, const Value& self, const Arguments& /*arguments*/) {
  const Text& text = text_of(self);
  const bool cased = upper(text).bytes() != lower(text).bytes();
  return Value::boolean(cased && kChange(text).bytes() == text.bytes());
}

Value zfill(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Text& text = text_of(self);
  const auto size = static_cast<int64_t>(character_starts(text.view()).size()) - 1;
  const int64_t missing = std::clamp<int64_t>(arguments.integer(0, "width", 0) - size, 0, 1000);
  const size_t sign = text.bytes().starts_with('-') || text.bytes().starts_with('+') ? 1 : 0;
  Text out = text.cut(0, sign);
  out.append(std::string(static_cast<size_t>(missing), '0'), Origin::kTemplate);
  out.append(text, sign, text.size());
  return interpreter.text_value(std::move(out));
}

template <bool kRight>
Value partition(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  const Text separator = to_text(arguments.required(0, "sep"));
  const Text& text = text_of(self);
  const size_t at =
      kRight ? text.bytes().rfind(separator.bytes()) : text.bytes().find(separator.bytes());
  if (at == std::string::npos) {
    const Value empty = Value::text("");
    return Value::tuple(kRight ? Values{empty, empty, self} : Values{self, empty, empty});
  }
  return Value::tuple(
      {Value::text(text.cut(0, at)),
       Value::text(text.cut(at, at + separator.size())),
       Value::text(text.cut(at + separator.size(), text.size()))}
  );
}

/// "{}", "{0}" and "{name}"; format specifications are refused.
Value format(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Text& text = text_of(self);
  const std::string_view view = text.view();
  Text out;
  size_t next = 0;
  for (size_t at = 0; at < view.size();) {
    const char c = view[at];
    if ((c != '{' && c != '}') || (at + 1 < view.size() && view[at + 1] == c)) {
      out.append(text, at, at + 1);
      at += c == '{' || c == '}' ? 2 : 1;
      continue;
    }
    const size_t end = view.find('}', at);
    if (c == '}' || end == std::string_view::npos) {
      throw invalid("a single '{' or '}' in a format string");
    }
    const std::string_view field = view.substr(at + 1, end - at - 1);
    if (field.find_first_of(":!.[{") != std::string_view::npos) {
      throw Error(
          ErrorKind::kUnsupported, fmt::format("the format field '{}' is not supported", field)
      );
    }
    size_t position = next;
    const auto number = std::from_chars(field.data(), field.data() + field.size(), position);
    const bool named = !field.empty() && number.ec != std::errc();
    next += field.empty() ? 1 : 0;
    out.append(to_text(arguments.required(named ? SIZE_MAX : position, field)));
    at = end + 1;
  }
  return interpreter.text_value(std::move(out));
}

// Dicts and lists.

Value dict_get(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  const Value* found = self.as_dict()->find(arguments.required(0, "key"));
  const Value* missing = arguments.find(1, "default");
  return found != nullptr ? *found : missing != nullptr ? *missing : Value();
}

template <int kPart>
Value dict_list(Interpreter& interpreter, const Value& self, const Arguments& /*arguments*/) {
  Values out;
  for (const auto& [key, value] : self.as_dict()->entries()) {
    out.push_back(kPart == 0 ? key : kPart == 1 ? value : Value::tuple({key, value}));
  }
  interpreter.charge(static_cast<int64_t>(out.size()));
  return Value::list(std::move(out));
}

Value itself(Interpreter& /*interpreter*/, const Value& self, const Arguments& /*arguments*/) {
  return self;
}

Value list_index(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Values& items = self.as_sequence()->items;
  interpreter.charge(static_cast<int64_t>(items.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(items[i], arguments.required(0, "value"))) {
      return Value::integer(static_cast<int64_t>(i));
    }
  }
  throw invalid("the list does not hold what index looks for");
}

Value list_count(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Values& items = self.as_sequence()->items;
  interpreter.charge(static_cast<int64_t>(items.size()));
  return Value::integer(std::count_if(items.begin(), items.end(), [&](const Value& item) {
    return equal(item, arguments.required(0, "value"));
  }));
}

// Loops.

Value loop_cycle(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    throw invalid("cycle needs something to go through");
  }
  return arguments.positional[self.as_loop()->index % arguments.positional.size()];
}

Value loop_changed(Interpreter& /*interpreter*/, const Value& self, const Arguments& arguments) {
  LoopState& loop = *self.as_loop();
  Value now = Value::list(arguments.positional);
  const bool differs = loop.last_changed == nullptr || !equal(*loop.last_changed, now);
  loop.last_changed = std::make_unique<Value>(std::move(now));
  return Value::boolean(differs);
}

struct NamedMethod {
  std::string_view name;
  Method method;
};

constexpr NamedMethod kTextMethods[] = {
    {"strip", strip<Sides::kBoth>},
    {"lstrip", strip<Sides::kLeft>},
    {"rstrip", strip<Sides::kRight>},
    {"upper", changed<upper>},
    {"lower", changed<lower>},
    {"capitalize", changed<capitalized>},
    {"title", changed<titled>},
    {"split", split<split_left>},
    {"rsplit", split<split_right>},
    {"splitlines", split<split_lines>},
    {"startswith", has_affix<false>},
    {"endswith", has_affix<true>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"find", find<false, false>},
    {"rfind", find<true, false>},
    {"index", find<false, true>},
    {"rindex", find<true, true>},
    {"count", count_text},
    {"join", join},
    {"format", format},
    {"isdigit", all_characters<is_digit>},
    {"isnumeric", all_characters<is_digit>},
    {"isdecimal", all_characters<is_digit>},
    {"isalpha", all_characters<is_letter>},
    {"isalnum", all_characters<is_letter_or_digit>},
    {"isspace", all_characters<is_space>},
    {"isupper", has_case<upper>},
    {"islower", has_case<lower>},
    {"zfill", zfill},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
};
constexpr NamedMethod kDictMethods[] = {
    {"get", dict_get},
    {"keys", dict_list<0>},
    {"values", dict_list<1>},
    {"items", dict_list<2>},
    {"copy", itself},
};
constexpr NamedMethod kListMethods[] = {
    {"index", list_index}, {"count", list_count}, {"copy", itself}};
constexpr NamedMethod kLoopMethods[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};
constexpr std::string_view kForbiddenOfDicts[] = {
    "clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kForbiddenOfLists[] = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};

template <size_t kCount>
Value method_of(const Value& self, std::string_view name, const NamedMethod (&methods)[kCount]) {
  for (const NamedMethod& method : methods) {
    if (method.name == name) {
      return Value(
          std::shared_ptr<const Callable>(std::make_shared<BoundMethod>(name, self, method.method))
      );
    }
  }
  return Value::undefined("");
}

template <size_t kCount>
bool is_forbidden(std::string_view name, const std::string_view (&names)[kCount]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

Value bound_method(const Value& self, std::string_view name) {
  const bool list = self.as_sequence() != nullptr;
  const bool dict = self.as_dict() != nullptr;
  if ((list && is_forbidden(name, kForbiddenOfLists)) ||
      (dict && is_forbidden(name, kForbiddenOfDicts))) {
    return Value(std::shared_ptr<const Callable>(std::make_shared<ForbiddenMethod>(std::string(name)
    )));
  }
  return self.is_text()              ? method_of(self, name, kTextMethods)
         : list                      ? method_of(self, name, kListMethods)
         : dict                      ? method_of(self, name, kDictMethods)
         : self.as_loop() != nullptr ? method_of(self, name, kLoopMethods)
                                     : Value::undefined("");
}

}  // namespace octet::jinja
