// What a reply must look like, from the fields that say so: response_format, regex, choice,
// grammar, tool_choice and the schemas of tools. Compiling is grammar/; here fields become its
// calls and its errors name their field. Invariant: a constraint that was asked for is enforced or
// refused.
#pragma once

#include <memory>
#include <string>

#include "octet/grammar/grammar.h"
#include "octet/serve/generation_request.h"

namespace octet::serve {

/// Where thoughts may stand before what is constrained.
ThoughtStart thought_of(const ChatPrompt& prompt, const ServedModel& model);

/// From response_format, structured_outputs, choice, regex, grammar or json_schema; null: none.
std::shared_ptr<const Grammar> read_constraint(
    RequestFields& fields, const ServedModel& model, ThoughtStart thought
);

/// Reads tool_choice and parallel_tool_calls. "auto", "none", "required", or the one tool's name
/// behind "=".
std::string read_tools(RequestFields& fields, const Json* tools, GenerationRequest& request);

struct ToolDemand {
  const Json* tools = nullptr;  // checked; null: none
  std::string choice;           // of read_tools
  ThoughtStart thought = ThoughtStart::kNone;
  const Json* speech = nullptr;  // schema of what is said; null: free
};
/// The schema of response_format, which read_constraint has found to be one; null: none is given.
const Json* speech_schema(RequestFields& fields);

/// Whether the choice leaves it to the model whether to call.
bool may_speak(const std::string& choice);

/// What enforces the choice and the schemas of strict tools; null where the model is free.
std::shared_ptr<const Grammar> tool_grammar(
    const ToolDemand& demand, const ServedModel& model, const GenerationRequest& request
);

}  // namespace octet::serve
