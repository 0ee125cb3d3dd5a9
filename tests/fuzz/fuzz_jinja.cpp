// Any text as a template, with variables of every type: a text or a clear Error, within the limits.
#include <cstddef>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/chat/json_value.h"
#include "octet/jinja/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto json = nlohmann::ordered_json::parse(
      R"({"a":"text <|x|> \u00e9","n":3,"r":0.5,"l":[3,1,"b",null],"d":{"k":[1,{"x":true}],"t":"v"},"f":false,
          "messages":[{"role":"user","content":" Hi "},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"b":1}}}]}]})"
  );
  try {
    const octet::jinja::Template compiled({reinterpret_cast<const char*>(data), size});
    const octet::jinja::RenderLimits limits = {.max_steps = 20'000, .max_text_bytes = 1 << 16};
    const octet::jinja::Value variables = octet::caller_value(json);
    compiled.render(variables.as_dict()->entries(), limits, [] { return 1790000000; });
  } catch (const octet::Error&) {  // as it should be
  }
  return 0;
}
