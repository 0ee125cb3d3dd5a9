// The functions that every template can name, and arguments of calls.
#include <algorithm>
#include <array>
#include <ctime>

#include <fmt/format.h>

#include "octet/jinja/interpreter.h"

namespace octet::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // as in Jinja2's sandbox

Error invalid(std::string message) {
  return {ErrorKind::kInvalidArgument, std::move(message)};
}

class Function : public Callable {
 public:
  using Body = Value (*)(Interpreter&, const Arguments&);
  Function(std::string name, Body body) : Callable(std::move(name)), body_(body) {}
  Value call(Interpreter& interpreter, const Arguments& arguments) const override {
    return body_(interpreter, arguments);
  }

 private:
  Body body_;
};

Value range(Interpreter& interpreter, const Arguments& arguments) {
  const bool one = arguments.positional.size() == 1;
  const int64_t begin = one ? 0 : arguments.integer(0, "start", 0);
  const int64_t end = arguments.integer(one ? 0 : 1, "stop", 0);
  const int64_t step = arguments.integer(2, "step", 1);
  if (step == 0) {
    throw invalid("the step of range is zero");
  }
  Values items;
  for (int64_t at = begin; step > 0 ? at < end : at > end;) {
    if (static_cast<int64_t>(items.size()) >= kMaxRange) {
      throw Error(
          ErrorKind::kResourceExhausted, fmt::format("range gives more than {} numbers", kMaxRange)
      );
    }
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) {
      break;
    }
  }
  interpreter.charge(static_cast<int64_t>(items.size()));
  return Value::list(std::move(items));
}

std::vector<Entry> dict_entries(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<Entry> entries;
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional.front();
    if (const Dict* dict = from.as_dict()) {
      entries = dict->entries();
    } else {
      for (const Value& pair : interpreter.iterate(from)) {
        Values both = interpreter.iterate(pair);
        if (both.size() != 2) {
          throw invalid("dict needs pairs");
        }
        entries.emplace_back(std::move(both[0]), std::move(both[1]));
      }
    }
  }
  for (const auto& [name, value] : arguments.keywords) {
    entries.emplace_back(Value::text(name), value);
  }
  return entries;
}

Value dict(Interpreter& interpreter, const Arguments& arguments) {
  return Value::dict(dict_entries(interpreter, arguments));
}

Value make_namespace(Interpreter& interpreter, const Arguments& arguments) {
  std::vector<std::pair<std::string, Value>> attributes;
  for (auto& [key, value] : dict_entries(interpreter, arguments)) {
    attributes.emplace_back(to_text(key).bytes(), std::move(value));
  }
  return interpreter.new_namespace(std::move(attributes));
}

Value raise_exception(Interpreter& /*interpreter*/, const Arguments& arguments) {
  throw LocatedError(
      ErrorKind::kInvalidArgument,
      "the chat template refuses this: " + arguments.text(0, "message", "").bytes()
  );
}

Value strftime_now(Interpreter& interpreter, const Arguments& arguments) {
  const std::string format = arguments.text(0, "format", "").bytes();
  const std::time_t seconds = interpreter.now();
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 1024> buffer{};
  if (format.empty() || format.size() > buffer.size() / 8) {
    return Value::text("");
  }
  const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &parts);
  return Value::text(std::string_view(buffer.data(), size));
}

/// joiner(sep): nothing at the first call, the separator afterwards.
class Joiner : public Callable {
 public:
  explicit Joiner(Value state) : Callable("joiner"), state_(std::move(state)) {}
  Value call(Interpreter& /*interpreter*/, const Arguments& /*arguments*/) const override {
    Value& used = *state_.as_namespace()->find("used");
    if (!used.truthy()) {
      used = Value::boolean(true);
      return Value::text("");
    }
    return *state_.as_namespace()->find("separator");
  }

 private:
  Value state_;
};

Value joiner(Interpreter& interpreter, const Arguments& arguments) {
  Value state = interpreter.new_namespace(
      {{"used", Value::boolean(false)}, {"separator", Value::text(arguments.text(0, "sep", ", "))}}
  );
  return Value(std::shared_ptr<const Callable>(std::make_shared<Joiner>(std::move(state))));
}

}  // namespace

std::vector<std::pair<std::string_view, Value>> global_functions() {
  const std::pair<std::string_view, Function::Body> functions[] = {
      {"range", range},
      {"dict", dict},
      {"namespace", make_namespace},
      {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},
      {"joiner", joiner}};
  std::vector<std::pair<std::string_view, Value>> out;
  for (const auto& [name, body] : functions) {
    out.emplace_back(
        name,
        Value(std::shared_ptr<const Callable>(std::make_shared<Function>(std::string(name), body)))
    );
  }
  return out;
}

const Value* Arguments::find(size_t position, std::string_view name) const {
  if (position < positional.size()) {
    return &positional[position];
  }
  const auto keyword = std::find_if(keywords.begin(), keywords.end(), [&](const auto& one) {
    return one.first == name;
  });
  return keyword == keywords.end() ? nullptr : &keyword->second;
}

const Value* Arguments::given(size_t position, std::string_view name) const {
  const Value* value = find(position, name);
  return value == nullptr || value->is_undefined() || value->is_none() ? nullptr : value;
}

int64_t Arguments::integer(size_t position, std::string_view name, int64_t missing) const {
  const Value* value = given(position, name);
  if (value == nullptr) {
    return missing;
  }
  if (!value->is_integer() && !value->is_boolean()) {
    throw invalid(fmt::format("'{}' must be an integer, not a {}", name, type_name(*value)));
  }
  return value->integer();
}

bool Arguments::boolean(size_t position, std::string_view name, bool missing) const {
  const Value* value = find(position, name);
  return value == nullptr ? missing : value->truthy();
}

Text Arguments::text(size_t position, std::string_view name, std::string_view missing) const {
  const Value* value = given(position, name);
  return value == nullptr ? Text(missing) : to_text(*value);
}

const Value& Arguments::required(size_t position, std::string_view name) const {
  const Value* value = find(position, name);
  if (value == nullptr) {
    throw invalid(fmt::format("the argument '{}' is missing", name));
  }
  return *value;
}

}  // namespace octet::jinja
