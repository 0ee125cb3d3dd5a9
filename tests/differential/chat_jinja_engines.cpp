// The template engine against Jinja2 itself, on templates that are new with every seed.
#include <random>

#include "support/command_output.h"
#include "support/golden_text.h"
#include "support/jinja_cases.h"
#include "support/missing.h"

namespace octet {
namespace {

const std::string kScript = OCTET_SOURCE_DIR "/tests/differential/jinja_cases.py";

TEST(JinjaEngines, EqualsJinja2OnRandomTemplates) {
  if (test::output_of("python3 -c 'import jinja2; print(1)' 2>/dev/null").empty()) {
    OCTET_NEEDS("python3-jinja2");
  }
  const auto variables =
      nlohmann::ordered_json::parse(test::output_of("python3 '" + kScript + "' variables"));
  const auto seed = std::to_string(std::random_device{}() % 1'000'000);
  SCOPED_TRACE("seed " + seed);
  const std::string lines = test::output_of("python3 '" + kScript + "' random " + seed + " 400");
  EXPECT_EQ(test::expect_jinja_cases(lines, variables), 400);
}

}  // namespace
}  // namespace octet
