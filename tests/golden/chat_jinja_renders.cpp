// The template engine against what Jinja2, set up as the transformers library does, made of the
// same templates; made by `tests/differential/jinja_cases.py`.
#include "support/golden_text.h"
#include "support/jinja_cases.h"

namespace octet {
namespace {

const std::string kGolden = OCTET_SOURCE_DIR "/tests/golden/jinja/";

TEST(JinjaGolden, EqualsJinja2) {
  const auto variables = nlohmann::ordered_json::parse(test::read_text(kGolden + "variables.json"));
  EXPECT_GT(test::expect_jinja_cases(test::read_text(kGolden + "renders.jsonl"), variables), 270);
}

}  // namespace
}  // namespace octet
