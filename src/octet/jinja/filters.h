// The filters ("value | name") and tests ("value is name") of the template language, by name. Not
// for methods of values (callable.h). Each behaves as in Jinja2, except that filters which give
// Python generators give lists here.
#pragma once

#include <string_view>

#include "octet/jinja/callable.h"

namespace octet::jinja {

/// Throws Error: kUnsupported for an unknown name, kInvalidArgument for what it cannot do.
Value apply_filter(
    Interpreter& interpreter, std::string_view name, const Value& value, const Arguments& arguments
);
bool apply_test(
    Interpreter& interpreter, std::string_view name, const Value& value, const Arguments& arguments
);

using FilterFunction = Value (*)(Interpreter&, const Value&, const Arguments&);
struct NamedFilter {
  std::string_view name;
  FilterFunction function;
};
/// Those of text_filters.cpp and list_filters.cpp.
const NamedFilter* find_text_filter(std::string_view name);
const NamedFilter* find_list_filter(std::string_view name);

}  // namespace octet::jinja
