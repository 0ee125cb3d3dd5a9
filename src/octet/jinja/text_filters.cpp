// Filters that make or change texts and numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

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

constexpr int64_t kMaxWidth = 1000;

template <Text (*kChange)(const Text&)>
Value changed(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  return interpreter.text_value(kChange(to_text(value)));
}

Value trim(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Text text = to_text(value);
  const Text set = arguments.text(0, "chars", "");
  const ByteRange range = stripped(text.view(), Sides::kBoth, set.view());
  return interpreter.text_value(text.cut(range.begin, range.end));
}

Value replace(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  return interpreter.text_value(replaced(
      interpreter,
      to_text(value),
      to_text(arguments.required(0, "old")),
      to_text(arguments.required(1, "new")),
      arguments.integer(2, "count", -1)
  ));
}

Value indent(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Value* width = arguments.given(0, "width");
  const Text margin = width != nullptr && width->is_text()
                          ? *width->as_text()
                          : Text(std::string(
                                static_cast<size_t>(std::clamp<int64_t>(
                                    arguments.integer(0, "width", 4), 0, kMaxWidth
                                )),
                                ' '
                            ));
  const bool first = arguments.boolean(1, "first", false);
  const bool blank = arguments.boolean(2, "blank", false);
  Text text = to_text(value);
  text.append("\n", Origin::kTemplate);
  Text out;
  bool at_start = true;
  for (const Text& line : lines_of(text, false)) {
    interpreter.charge(1 + static_cast<int64_t>(margin.size()) / 64);
    if (!at_start) {
      out.append("\n", Origin::kTemplate);
    }
    if (at_start ? first : blank || !line.empty()) {
      out.append(margin);
    }
    out.append(line);
    at_start = false;
  }
  return interpreter.text_value(std::move(out));
}

Value escape(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  Text text = to_text(value);
  const std::pair<std::string_view, std::string_view> entities[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}};
  for (const auto& [plain, entity] : entities) {
    text = replaced(interpreter, text, Text(plain), Text(entity, Origin::kCaller), -1);
  }
  return interpreter.text_value(std::move(text));
}

Value truncate(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Text text = to_text(value);
  const std::vector<size_t> starts = character_starts(text.view());
  const auto size = static_cast<int64_t>(starts.size()) - 1;
  const int64_t length = arguments.integer(0, "length", 255);
  const Text end = arguments.text(2, "end", "...");
  const auto end_size = static_cast<int64_t>(character_starts(end.view()).size()) - 1;
  if (length < end_size) {
    throw invalid(fmt::format("truncate to {} characters has no room for its end", length));
  }
  if (size <= length + std::max<int64_t>(arguments.integer(3, "leeway", 5), 0)) {
    return interpreter.text_value(text);
  }
  Text out = text.cut(0, starts[static_cast<size_t>(std::min(length - end_size, size))]);
  if (!arguments.boolean(1, "killwords", false)) {
    const size_t space = out.view().rfind(' ');
    out = space == std::string_view::npos ? out : out.cut(0, space);
  }
  out.append(end);
  return interpreter.text_value(std::move(out));
}

Value wordcount(Interpreter& /*interpreter*/, const Value& value, const Arguments& /*arguments*/) {
  const Text text = to_text(value);
  int64_t words = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text.view(), at);
    const char32_t c = step.code_point;
    const bool word =
        step.status == Utf8Status::kValid && (is_letter(c) || (c >= '0' && c <= '9') || c == '_');
    words += word && !inside ? 1 : 0;
    inside = word;
    at += static_cast<size_t>(step.length);
  }
  return Value::integer(words);
}

Value string(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  return interpreter.text_value(to_text(value));
}

Value format(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Text text = to_text(value);
  if (arguments.keywords.empty()) {
    return interpreter.text_value(format_percent(text, Value::tuple(arguments.positional)));
  }
  std::vector<Entry> entries;
  for (const auto& [name, item] : arguments.keywords) {
    entries.emplace_back(Value::text(name), item);
  }
  return interpreter.text_value(format_percent(text, Value::dict(std::move(entries))));
}

Value tojson(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  JsonStyle style;
  style.ensure_ascii = arguments.boolean(0, "ensure_ascii", false);
  if (arguments.given(1, "indent") != nullptr) {
    style.indent = static_cast<int>(std::clamp<int64_t>(arguments.integer(1, "indent", 0), 0, 64));
    style.item_separator = std::string(1, ',');
  }
  if (const Value* separators = arguments.given(2, "separators")) {
    const Values both = interpreter.iterate(*separators);
    if (both.size() != 2) {
      throw invalid("separators must be two strings");
    }
    style.item_separator = to_text(both[0]).bytes();
    style.key_separator = to_text(both[1]).bytes();
  }
  style.sort_keys = arguments.boolean(3, "sort_keys", false);
  return interpreter.text_value(to_json(value, style));
}

// Numbers.

Value absolute(Interpreter& interpreter, const Value& value, const Arguments& /*arguments*/) {
  if (!value.is_number()) {
    throw invalid(fmt::format("a {} has no absolute value", type_name(value)));
  }
  return value.real() < 0     ? apply_operator(interpreter, "-", Value::integer(0), value)
         : value.is_boolean() ? Value::integer(value.integer())
                              : value;
}

/// The text as a number of Python's spelling; nullopt when it is none.
template <typename Number>
std::optional<Number> parse_number(const Text& text, int base = 10) {
  const ByteRange range = stripped(text.view(), Sides::kBoth);
  std::string digits(text.view().substr(range.begin, range.end - range.begin));
  std::erase(digits, '_');
  if (digits.starts_with('+') && !digits.starts_with("+-")) {
    digits.erase(0, 1);
  }
  Number number{};
  std::from_chars_result result{};
  if constexpr (std::is_integral_v<Number>) {
    result = std::from_chars(digits.data(), digits.data() + digits.size(), number, base);
  } else {
    result = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  }
  const bool whole = result.ec == std::errc() && result.ptr == digits.data() + digits.size();
  return whole ? std::optional<Number>(number) : std::nullopt;
}

bool fits_integer(double real) {
  return real > -9.2e18 && real < 9.2e18;
}

Value integer(Interpreter& /*interpreter*/, const Value& value, const Arguments& arguments) {
  const Value* missing = arguments.find(0, "default");
  const Value fallback = missing != nullptr ? *missing : Value::integer(0);
  const auto base = static_cast<int>(std::clamp<int64_t>(arguments.integer(1, "base", 10), 2, 36));
  if (value.is_undefined()) {
    throw invalid(value.what());
  }
  if (value.is_real()) {
    return fits_integer(value.real()) ? Value::integer(static_cast<int64_t>(value.real()))
                                      : fallback;
  }
  if (value.is_number()) {
    return Value::integer(value.integer());
  }
  const Text* text = value.as_text();
  if (text == nullptr) {
    return fallback;
  }
  if (const auto number = parse_number<int64_t>(*text, base)) {
    return Value::integer(*number);
  }
  const auto real = parse_number<double>(*text);
  return real && fits_integer(*real) ? Value::integer(static_cast<int64_t>(*real)) : fallback;
}

Value real(Interpreter& /*interpreter*/, const Value& value, const Arguments& arguments) {
  const Value* missing = arguments.find(0, "default");
  const Value fallback = missing != nullptr ? *missing : Value::real(0.0);
  if (value.is_undefined()) {
    throw invalid(value.what());
  }
  if (value.is_number()) {
    return Value::real(value.real());
  }
  const auto number = value.is_text() ? parse_number<double>(*value.as_text()) : std::nullopt;
  return number ? Value::real(*number) : fallback;
}

Value round(Interpreter& /*interpreter*/, const Value& value, const Arguments& arguments) {
  if (!value.is_number()) {
    throw invalid(fmt::format("a {} cannot be rounded", type_name(value)));
  }
  const int64_t precision = std::clamp<int64_t>(arguments.integer(0, "precision", 0), -300, 300);
  const std::string method = arguments.text(1, "method", "common").bytes();
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    const double scaled = value.real() * scale;
    return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (method != "common") {
    throw invalid("round knows the methods common, ceil and floor");
  }
  if (!value.is_real() && precision >= 0) {
    return Value::integer(value.integer());
  }
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    const double rounded = std::nearbyint(value.real() / scale) * scale;
    return value.is_real() || !fits_integer(rounded)
               ? Value::real(rounded)
               : Value::integer(static_cast<int64_t>(rounded));
  }
  // Printing rounds the exact binary value correctly, ties to even, as Python does.
  const std::string text = fmt::format("{:.{}f}", value.real(), precision);
  double rounded = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return Value::real(rounded);
}

constexpr NamedFilter kFilters[] = {
    {"abs", absolute},
    {"capitalize", changed<capitalized>},
    {"e", escape},
    {"escape", escape},
    {"float", real},
    {"format", format},
    {"indent", indent},
    {"int", integer},
    {"lower", changed<lower>},
    {"replace", replace},
    {"round", round},
    {"safe", string},
    {"string", string},
    {"title", changed<titled_words>},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", changed<upper>},
    {"wordcount", wordcount},
};

/// One conversion of a %-format: "%-5.2f".
struct Conversion {
  std::string key;
  std::string flags;
  int width = 0;
  int precision = -1;
  char type = 's';
};

std::string converted_number(const Conversion& conversion, const Value& value) {
  if (!value.is_number()) {
    throw invalid(fmt::format("%{} needs a number, not a {}", conversion.type, type_name(value)));
  }
  std::string pattern = fmt::format("%{}", conversion.flags);
  char buffer[512];
  if (std::string_view("eEfFgG").find(conversion.type) != std::string_view::npos) {
    const int precision = conversion.precision < 0 ? 6 : conversion.precision;
    pattern.append("*.*").push_back(conversion.type);
    std::snprintf(
        buffer, sizeof buffer, pattern.c_str(), conversion.width, precision, value.real()
    );
  } else {
    const bool whole = !value.is_real() || fits_integer(value.real());
    const int64_t number = !whole            ? 0
                           : value.is_real() ? static_cast<int64_t>(value.real())
                                             : value.integer();
    pattern.append("*ll").push_back(conversion.type == 'i' ? 'd' : conversion.type);
    std::snprintf(
        buffer, sizeof buffer, pattern.c_str(), conversion.width, static_cast<long long>(number)
    );
  }
  return buffer;
}

void append_conversion(const Conversion& conversion, const Value& value, Text& out) {
  if (conversion.type != 's' && conversion.type != 'r') {
    out.append(converted_number(conversion, value), Origin::kTemplate);
    return;
  }
  Text text = conversion.type == 's' ? to_text(value) : to_repr(value);
  const std::vector<size_t> starts = character_starts(text.view());
  const size_t size = starts.size() - 1;
  const size_t kept =
      conversion.precision < 0 ? size : std::min(size, static_cast<size_t>(conversion.precision));
  const auto width = static_cast<size_t>(conversion.width);
  const std::string padding(width > kept ? width - kept : 0, ' ');
  const bool left = conversion.flags.find('-') != std::string::npos;
  out.append(left ? "" : padding, Origin::kTemplate);
  out.append(text, 0, starts[kept]);
  out.append(left ? padding : "", Origin::kTemplate);
}

/// Behind "%", moves `at` behind the conversion.
Conversion read_conversion(std::string_view text, size_t& at) {
  Conversion out;
  if (at < text.size() && text[at] == '(') {
    const size_t end = text.find(')', at);
    if (end == std::string_view::npos) {
      throw invalid("a key in a format is not closed");
    }
    out.key = text.substr(at + 1, end - at - 1);
    at = end + 1;
  }
  while (at < text.size() && std::string_view("-+ 0#").find(text[at]) != std::string_view::npos) {
    out.flags.push_back(text[at++]);
  }
  const auto number = [&](int& value) {
    value = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
      value = std::min(value * 10 + (text[at++] - '0'), 200);
    }
  };
  number(out.width);
  if (at < text.size() && text[at] == '.') {
    ++at;
    number(out.precision);
  }
  out.type = at < text.size() ? text[at++] : '\0';
  if (out.type == '\0' ||
      std::string_view("sdirxXoeEfFgG%").find(out.type) == std::string_view::npos) {
    throw invalid("a format has an unknown conversion");
  }
  return out;
}

}  // namespace

Text format_percent(const Text& format, const Value& arguments) {
  const Sequence* tuple = arguments.as_sequence();
  const Values values = tuple != nullptr && tuple->tuple ? tuple->items : Values{arguments};
  Text out;
  size_t used = 0;
  for (size_t at = 0; at < format.size();) {
    const size_t mark = std::min(format.view().find('%', at), format.size());
    out.append(format, at, mark);
    at = mark + 1;
    if (mark == format.size()) {
      break;
    }
    const Conversion conversion = read_conversion(format.view(), at);
    if (conversion.type == '%') {
      out.append("%", format.origin(mark));
      continue;
    }
    const Dict* dict = arguments.as_dict();
    const Value* value = conversion.key.empty() ? (used < values.size() ? &values[used++] : nullptr)
                         : dict != nullptr      ? dict->find(conversion.key)
                                                : nullptr;
    if (value == nullptr) {
      throw invalid("a format has more conversions than values");
    }
    append_conversion(conversion, *value, out);
  }
  if (arguments.as_dict() == nullptr && used < values.size()) {
    throw invalid("a format has fewer conversions than values");
  }
  return out;
}

const NamedFilter* find_text_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const NamedFilter& one) {
        return one.name == name;
      });
  return found == std::end(kFilters) ? nullptr : found;
}

}  // namespace octet::jinja
