// Golden data beside the project: where it is, and reading raw arrays and JSON. What needs it is
// not run where it is not there, and that is said with the path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "octet/formats/json_value.h"

namespace octet::test {

inline std::string shared_path(const std::string& relative) {
  return std::string(OCTET_SHARED_DIR) + "/" + relative;
}

inline bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

/// The cases whose file is there, for suites of which the project keeps the smaller files alone.
template <typename Case>
std::vector<Case> present(const std::vector<Case>& cases, std::string (*path_of)(const Case&)) {
  std::vector<Case> found;
  for (const Case& one : cases) {
    if (exists(path_of(one))) {
      found.push_back(one);
    } else {
      std::cerr << "not tested, because it is not there: " << path_of(one) << '\n';
    }
  }
  return found;
}

inline std::vector<char> read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    throw std::runtime_error("cannot read " + path);
  }
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Raw little-endian float32 values as rows of `cols`.
inline std::vector<std::vector<float>> read_f32_rows(const std::string& path, int64_t cols) {
  const std::vector<char> bytes = read_bytes(path);
  const auto* values = reinterpret_cast<const float*>(bytes.data());
  const auto width = static_cast<size_t>(cols);
  const size_t rows = bytes.size() / sizeof(float) / width;
  std::vector<std::vector<float>> out;
  for (size_t r = 0; r < rows; ++r) {
    out.emplace_back(values + r * width, values + (r + 1) * width);
  }
  return out;
}

inline JsonValue parse_text(const std::vector<char>& text) {
  return parse_json(std::as_bytes(std::span(text)));
}

inline JsonValue read_json(const std::string& path) {
  return parse_text(read_bytes(path));
}

inline std::vector<int32_t> token_list(const JsonArray& array) {
  std::vector<int32_t> out;
  for (const JsonValue& value : array) {
    out.push_back(static_cast<int32_t>(value.integer().value()));
  }
  return out;
}

}  // namespace octet::test
