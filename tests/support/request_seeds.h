// Bodies of requests that are served, by route, which between them have most fields: where fuzzing
// begins.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace octet::test {

inline std::vector<std::pair<std::string, std::string>> request_seeds() {
  return {
      {"/v1/chat/completions",
       R"({"messages":[{"role":"system","content":"You are Robi."},{"role":"user","content":[{"type":"text","text":"Look \u00e9\ud83e\udd8e left."}]},
{"role":"assistant","content":"I look.","reasoning_content":"Left.","tool_calls":[{"id":"c1","type":"function","function":{"name":"look_at","arguments":"{\"to\":[1,{\"a\":null}]}"}}]},
{"role":"tool","tool_call_id":"c1","content":"done"},{"role":"user","content":"And now?"}],
"tools":[{"type":"function","function":{"name":"look_at","strict":true,"parameters":{"type":"object","properties":{"to":{"type":"array","items":{"type":"integer"}}},"required":["to"]}}}],
"tool_choice":"required","parallel_tool_calls":false,"seed":4,"max_completion_tokens":9,"temperature":0.5,"top_k":4,"top_p":0.9,"min_p":0.1,"stop":["END"],
"logit_bias":{"7":-1.5},"logprobs":true,"top_logprobs":2,"n":2,"priority":3,"deadline_ms":50,"speech_deadline_ms":5,"first_clause_deadline_ms":9,"request_id":"a-1"})"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Once"}],"continue_final_message":true,"add_generation_prompt":false,
"response_format":{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":{"type":"object","properties":{"a":{"enum":["x",1]}},"required":["a"]}}},
"chat_template_kwargs":{"enable_thinking":true,"thinking_token_budget":8},"stream":true,"stream_options":{"include_usage":true,"include_clauses":true,"clause_characters":20},
"speculative":{"enabled":true,"max_length":3,"policy":"fixed"},"presence_penalty":1,"repetition_penalty":1.2,"repeat_last_n":64,"penalise_prompt":true})"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"x"}],"reasoning_effort":"low","regex":"[a-c]{2,3}","reasoning_key":"both"})"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"x"}],"structured_outputs":{"choice":["yes","no"]},"thinking":{"type":"enabled","budget_tokens":4}})"},
      {"/v1/completions",
       R"({"prompt":["In the <|turn>beginning",[2,300,301]],"max_tokens":5,"min_tokens":2,"logprobs":2,"stop_token_ids":[1],"ignore_eos":true,"logit_bias":[[42,-1.5],[7,false]]})"},
      {"/v1/completions",
       R"({"prompt":"a","grammar":"root ::= \"a\" b*\nb ::= [^x-z]","stream":true})"},
      {"/v1/responses",
       R"({"instructions":"You are Robi.","input":[{"role":"user","content":[{"type":"input_text","text":"Look left."}]},
{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Left."}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
{"type":"function_call","call_id":"c1","name":"look_at","arguments":"{\"to\":\"left\"}"},{"type":"function_call_output","call_id":"c1","output":"done"},{"role":"user","content":"And now?"}],
"tools":[{"type":"function","name":"look_at","description":"Turns.","strict":true,"parameters":{"type":"object","properties":{"to":{"type":"string"}}}}],
"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look_at"}]},"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":9,
"include":["reasoning.encrypted_content"],"store":false,"stream":true,"seed":1})"},
      {"/v1/responses",
       R"({"input":"x","text":{"format":{"type":"json_schema","name":"s","schema":{"type":"object"}}},"reasoning":{"effort":"none"},"speculative":{"max_length":2}})"},
      {"/v1/messages",
       R"({"system":[{"type":"text","text":"You are Robi.","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"Look left."},
{"role":"assistant","content":[{"type":"thinking","thinking":"Left.","signature":""},{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"look_at","input":{"to":"left"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"stuck"}]},{"type":"text","text":"And now?"}]}],
"tools":[{"name":"look_at","description":"Turns.","input_schema":{"type":"object","properties":{"to":{"type":"string"}}}}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},
"thinking":{"type":"enabled","budget_tokens":16},"max_tokens":9,"stop_sequences":["END"],"temperature":0.5,"metadata":{"user_id":"u"},"stream":true})"},
      {"/v1/messages",
       R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"Once"}],"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}},"effort":"low"},"thinking":{"type":"adaptive"},"max_tokens":4})"},
      {"/v1/messages/count_tokens",
       R"({"system":"You are Robi.","messages":[{"role":"user","content":"x"}]})"},
      {"/tokenize",
       R"({"content":"Hello \ud83e\udd8e <|turn>","with_pieces":true,"add_special":true,"parse_special":false})"},
      {"/tokenize", R"({"messages":[{"role":"user","content":"x"}]})"},
      {"/detokenize", R"({"tokens":[2,300,301,302]})"},
      {"/apply-template",
       R"({"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"enable_thinking":false,"conversational_mode":true}})"},
  };
}

}  // namespace octet::test
