// Runs another program and returns what it prints: independent readers that tests compare with.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace octet::test {

/// Standard output of a shell command; empty when it fails before printing.
inline std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string output;
  char buffer[4096];
  size_t count = 0;
  while ((count = std::fread(buffer, 1, sizeof(buffer), pipe.get())) > 0) {
    output.append(buffer, count);
  }
  return output;
}

}  // namespace octet::test
