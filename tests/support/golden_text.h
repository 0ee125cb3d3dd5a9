// A whole file as text.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace octet::test {

/// Empty when there is no such file.
inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

}  // namespace octet::test
