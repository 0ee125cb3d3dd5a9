// The template engine against Jinja2 itself, on templates that are new with every seed.
#include <cstdio>
#include <memory>
#include <random>

#include "support/golden_text.h"
#include "support/jinja_cases.h"

namespace octet {
namespace {

const std::string kScript = OCTET_SOURCE_DIR "/tests/differential/jinja_cases.py";

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string output;
  char buffer[4096];
  size_t count = 0;
  while ((count = std::fread(buffer, 1, sizeof(buffer), pipe.get())) > 0) {
    output.append(buffer, count);
  }
  return output;
}

TEST(JinjaEngines, EqualsJinja2OnRandomTemplates) {
  if (output_of("python3 -c 'import jinja2; print(1)' 2>/dev/null").empty()) {
    GTEST_SKIP() << "python3-jinja2 is not installed";
  }
  const auto variables =
      nlohmann::ordered_json::parse(output_of("python3 '" + kScript + "' variables"));
  const auto seed = std::to_string(std::random_device{}() % 1'000'000);
  SCOPED_TRACE("seed " + seed);
  const std::string lines = output_of("python3 '" + kScript + "' random " + seed + " 400");
  EXPECT_EQ(test::expect_jinja_cases(lines, variables), 400);
}

}  // namespace
}  // namespace octet
