#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/interrupt.h"
#include "octet/cli/json_writer.h"
#include "octet/cli/margins.h"
#include "octet/cli/reply.h"

namespace octet::cli {
namespace {

std::string read_prompt(const RunArguments& arguments) {
  if (arguments.prompt) {
    return *arguments.prompt;
  }
  if (!arguments.prompt_file.empty()) {
    return read_whole_file(arguments.prompt_file);
  }
  if (isatty(STDIN_FILENO) == 1) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "there is no prompt; give one with -p or -f, pipe one in, or use `octet chat`"
    );
  }
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

std::vector<TokenId> encode_prompt(
    const RunArguments& arguments, const Pair& pair, const std::string& text
) {
  const Tokenizer& tokenizer = *pair.tokenizer;
  if (arguments.raw) {
    for (const auto& [flag, value] :
         {std::pair("--system", &arguments.reply.system),
          std::pair("--chat-template", &arguments.reply.chat_template)}) {
      if (!value->empty()) {
        throw Error(
            ErrorKind::kInvalidArgument,
            fmt::format("{} belongs to a chat and --raw continues text; leave one out", flag)
        );
      }
    }
    // The caller's own text, control tokens included: whoever asks for --raw writes templates by
    // hand.
    return tokenizer.with_bos(tokenizer.encode(text, SpecialTokens::kParse));
  }
  std::vector<ChatMessage> messages;
  if (!arguments.reply.system.empty()) {
    messages.push_back({ChatRole::kSystem, arguments.reply.system});
  }
  messages.push_back({ChatRole::kUser, text});
  return encode_chat(
      load_chat_template(*pair.target_checkpoint, arguments.reply.chat_template),
      tokenizer,
      messages,
      chat_options(arguments.reply)
  );
}

void write_sampling(JsonWriter& json, const SamplingParams& sampling) {
  json.key("sampling").begin_object();
  json.member("temperature", static_cast<double>(sampling.temperature))
      .member("top_k", sampling.top_k);
  json.member("top_p", static_cast<double>(sampling.top_p))
      .member("min_p", static_cast<double>(sampling.min_p));
  json.member("seed", fmt::to_string(sampling.seed)).end_object();
}

void print_json(
    const RunArguments& arguments,
    Pair& pair,
    const Replier& replier,
    const std::vector<TokenId>& prompt,
    const Reply& reply
) {
  JsonWriter json;
  json.begin_object();
  json.member("text", reply.result.text)
      .member("speech", reply.speech)
      .member("thinking", reply.thinking);
  json.key("tool_calls").begin_array();
  for (const ToolCall& call : reply.calls) {
    json.begin_object().member("name", call.name).member("arguments", call.arguments);
    json.member("complete", call.complete).end_object();
  }
  json.end_array();
  json.member("finish", finish_reason_name(reply.result.finish)).key("prompt_ids").begin_array();
  for (const TokenId token : prompt) {
    json.value(token);
  }
  json.end_array().key("ids").begin_array();
  for (const TokenId token : reply.result.tokens) {
    json.value(token);
  }
  json.end_array().key("drafted").begin_array();
  for (const bool drafted : reply.result.drafted) {
    json.value(drafted);
  }
  json.end_array();
  if (arguments.margins) {
    std::vector<TokenId> text = prompt;
    text.insert(text.end(), reply.result.tokens.begin(), reply.result.tokens.end());
    json.key("margins").begin_array();
    for (const float margin :
         top_margins(*pair.target, pair.kv_type, text, static_cast<int64_t>(prompt.size()))) {
      json.value(static_cast<double>(margin));
    }
    json.end_array();
  }
  write_sampling(json, replier.sampling());
  json.member(
      "drafting", replier.undrafted_reason().empty() ? "on" : "off: " + replier.undrafted_reason()
  );
  write_statistics(json, replier.statistics(), replier.memory());
  json.end_object();
  fmt::print("{}\n", json.text());
}

}  // namespace

int run(const RunArguments& arguments) {
  if (arguments.json && arguments.reply.marks != Marks::kAuto) {
    throw Error(
        ErrorKind::kInvalidArgument,
        "--marks is about streamed text and --json prints none; leave one out"
    );
  }
  const std::string text = read_prompt(arguments);
  PairNeeds needs;
  needs.texts = texts_at_a_time(arguments.reply, 1);
  Pair pair = load_pair(arguments.pair, std::move(needs));
  const std::vector<TokenId> prompt = encode_prompt(arguments, pair, text);
  Replier replier(pair, arguments.reply, 1);
  TextStream stream(arguments.reply.marks);
  const InterruptGuard interrupt;
  const Reply reply = replier.reply(
      {.prompt = prompt, .tool_names = {}, .grammar = nullptr},
      arguments.json ? nullptr : &stream,
      interrupt.flag()
  );
  if (arguments.json) {
    print_json(arguments, pair, replier, prompt, reply);
  } else if (!arguments.reply.quiet) {
    print_summary(pair, replier, stream);
  }
  return 0;
}

}  // namespace octet::cli
