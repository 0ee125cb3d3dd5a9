#include "octet/cli/html_page.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace octet::cli {

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char character : text) {
    switch (character) {
      case '<':
        out += "&lt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += character;
    }
  }
  return out;
}

std::string html_plot(
    std::string_view title, std::string_view axis, const std::vector<Curve>& curves
) {
  constexpr double kWidth = 640.0;
  constexpr double kHeight = 220.0;
  constexpr std::array<const char*, 5> kColors = {
      "#1f6fb4", "#c8541d", "#2f8f4e", "#8a4fb0", "#7a6a1f"};
  double largest = 1e-12;
  size_t points_of_longest = 0;
  for (const Curve& curve : curves) {
    points_of_longest = std::max(points_of_longest, curve.values.size());
    for (const double value : curve.values) {
      largest = std::max(largest, value);
    }
  }
  std::string svg = fmt::format(
      "<h2>{}</h2><svg viewBox=\"-60 -10 {} {}\" width=\"{}\" role=\"img\">"
      "<path d=\"M0 0V{}H{}\" fill=\"none\" stroke=\"#888\"/>"
      "<text x=\"-6\" y=\"8\" text-anchor=\"end\">{:.3g}</text>"
      "<text x=\"-6\" y=\"{}\" text-anchor=\"end\">0</text>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
      html_escaped(title),
      kWidth + 80,
      kHeight + 45,
      kWidth + 80,
      kHeight,
      kWidth,
      largest,
      kHeight,
      kWidth,
      kHeight + 20,
      html_escaped(axis)
  );
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::vector<double>& values = curves[c].values;
    std::string points;
    const double step =
        points_of_longest > 1 ? kWidth / static_cast<double>(points_of_longest - 1) : 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      points += fmt::format(
          "{:.1f},{:.1f} ", step * static_cast<double>(i), kHeight * (1.0 - values[i] / largest)
      );
    }
    const char* color = kColors.at(c % kColors.size());
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>"
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" style=\"fill:{}\">{}</text>",
        points,
        color,
        kWidth,
        14 + 16 * c,
        color,
        html_escaped(curves[c].name)
    );
  }
  return svg + "</svg>\n";
}

std::string html_bars(std::string_view title, const std::vector<Bar>& bars) {
  constexpr double kWidth = 420.0;
  constexpr double kStep = 22.0;
  double largest = 1e-12;
  for (const Bar& bar : bars) {
    largest = std::max(largest, bar.value);
  }
  const double height = kStep * static_cast<double>(bars.size());
  std::string svg = fmt::format(
      "<h2>{}</h2><svg viewBox=\"-200 0 720 {}\" width=\"720\" role=\"img\">",
      html_escaped(title),
      height
  );
  for (size_t i = 0; i < bars.size(); ++i) {
    const double top = kStep * static_cast<double>(i);
    const double length = kWidth * std::max(bars[i].value, 0.0) / largest;
    svg += fmt::format(
        "<text x=\"-8\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"0\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\" fill=\"#1f6fb4\"/>"
        "<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>",
        top + 15,
        html_escaped(bars[i].name),
        top + 3,
        length,
        length + 6,
        top + 15,
        html_escaped(bars[i].text)
    );
  }
  return svg + "</svg>\n";
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table>\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    const char* cell = r == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& text : rows[r]) {
      out += fmt::format("<{}>{}</{}>", cell, html_escaped(text), cell);
    }
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string html_page(std::string_view title, std::string_view heading, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{}</title>"
      "<style>:root{{color-scheme:light dark}}body{{font:15px "
      "sans-serif;margin:2em;max-width:64em}}"
      "th{{text-align:left}}td,th{{padding:2px 14px 2px 0;vertical-align:top}}"
      "text{{font-size:12px;fill:currentColor}}svg{{max-width:100%}}h2{{font-size:16px}}</style>"
      "</head><body>\n<h1>{}</h1>\n{}</body></html>\n",
      html_escaped(title),
      html_escaped(heading),
      body
  );
}

}  // namespace octet::cli
