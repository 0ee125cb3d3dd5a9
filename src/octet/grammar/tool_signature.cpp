#include "octet/grammar/tool_signature.h"

#include <string>

#include <nlohmann/json.hpp>

namespace octet {

bool is_strict_tool(const nlohmann::ordered_json& tool) {
  const nlohmann::ordered_json& function = tool["function"];
  return function.contains("strict") && function["strict"] == true;
}

ToolSignature tool_signature(const nlohmann::ordered_json& tool) {
  const nlohmann::ordered_json& function = tool["function"];
  const bool schema = function.contains("parameters") && function["parameters"].is_object();
  return {
      function["name"].get<std::string>(),
      schema ? &function["parameters"] : nullptr,
      !is_strict_tool(tool)};
}

}  // namespace octet
