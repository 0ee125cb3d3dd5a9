// Pieces of self-contained HTML reports: escaped text, tables, line and bar plots as inline SVG,
// one page around them. No scripts, nothing loaded. Not for figures: they come formatted.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::cli {

std::string html_escaped(std::string_view text);

struct Curve {
  std::string name;
  std::vector<double> values;  // at equal distances
};

/// A line plot from 0 to the largest value.
std::string html_plot(
    std::string_view title, std::string_view axis, const std::vector<Curve>& curves
);

struct Bar {
  std::string name;
  double value = 0.0;
  std::string text;  // the value as it is told
};

/// Horizontal bars from 0 to the largest value.
std::string html_bars(std::string_view title, const std::vector<Bar>& bars);

/// The first row is the head.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

/// A page with a heading; `body` is HTML.
std::string html_page(std::string_view title, std::string_view heading, std::string_view body);

}  // namespace octet::cli
