// Any text as a reply with control tokens, and as the inside of a tool call cut in two ways: deltas
// whose arguments are JSON, the same for both cuts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "octet/base/check.h"
#include "octet/base/utf8.h"
#include "octet/chat/reply_reader.h"
#include "support/tokenizer_fixtures.h"

namespace {

std::string call_arguments(std::string_view text, size_t cut) {
  octet::ToolCallParser parser;
  std::string out;
  parser.push(text.substr(0, cut), out);
  parser.push(text.substr(cut), out);
  parser.finish(out);
  OCTET_CHECK(!parser.has_name() || nlohmann::json::accept(out));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = octet::replace_invalid_utf8({reinterpret_cast<const char*>(data), size});
  const std::string call = "call:f{" + text;
  OCTET_CHECK(call_arguments(call, call.size()) == call_arguments(call, size % call.size()));

  const auto tokenizer = octet::test::tiny_tokenizer();
  octet::ReplyReader reader(tokenizer, {});
  std::vector<octet::ReplyDelta> deltas;
  for (const octet::TokenId token : tokenizer->encode(text, octet::SpecialTokens::kParse)) {
    reader.push(token, deltas);
  }
  reader.finish(deltas);
  std::string arguments;
  for (const octet::ReplyDelta& delta : deltas) {
    OCTET_CHECK(octet::is_valid_utf8(delta.text));
    if (delta.kind == octet::ReplyDeltaKind::kToolCall) {
      arguments.clear();
    } else if (delta.kind == octet::ReplyDeltaKind::kToolCallArguments) {
      arguments += delta.text;
    } else if (delta.kind == octet::ReplyDeltaKind::kToolCallEnd) {
      OCTET_CHECK(nlohmann::json::accept(arguments));
    }
  }
  return 0;
}
