// Templates with what Jinja2 makes of them (tests/differential/jinja_cases.py), and how octet
// renders them.
#pragma once

#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/chat/json_value.h"
#include "octet/jinja/template.h"

namespace octet::test {

inline std::vector<jinja::Entry> jinja_variables(const nlohmann::ordered_json& json) {
  const jinja::Value value = caller_value(json);
  return value.as_dict()->entries();
}

inline std::string jinja_render(
    const std::string& source, const std::vector<jinja::Entry>& variables
) {
  return jinja::Template(source).render(variables, {}, [] { return 1790000000; }).bytes();
}

/// Lines {template, out} or {template, error}: octet gives the same text, or an error as well.
/// Returns how many were compared.
inline int expect_jinja_cases(const std::string& lines, const nlohmann::ordered_json& variables) {
  const std::vector<jinja::Entry> entries = jinja_variables(variables);
  std::istringstream stream(lines);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    const auto row = nlohmann::ordered_json::parse(line);
    const auto source = row["template"].get<std::string>();
    try {
      const std::string out = jinja_render(source, entries);
      if (row.contains("out")) {
        EXPECT_EQ(out, row["out"].get<std::string>()) << source;
      } else {
        ADD_FAILURE() << source << "\nis refused by Jinja2 (" << row["error"] << "), gives " << out;
      }
    } catch (const Error& error) {
      EXPECT_FALSE(row.contains("out")) << source << "\n" << error.what();
    }
  }
  return count;
}

}  // namespace octet::test
