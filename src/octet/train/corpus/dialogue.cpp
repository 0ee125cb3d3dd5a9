#include "octet/train/corpus/dialogue.h"

#include <algorithm>

#include <fmt/format.h>

#include "octet/base/philox.h"

namespace octet::train {
namespace {

constexpr uint32_t kPurpose = 0xD1A1;
constexpr std::string_view kQuote = "<|\"|>";

std::string in_quotes(std::string_view text) {
  return fmt::format("{}{}{}", kQuote, text, kQuote);
}

struct ValueText {
  std::string operator()(const std::string& text) const { return in_quotes(text); }
  std::string operator()(int64_t number) const { return fmt::format("{}", number); }
  std::string operator()(bool truth) const { return truth ? "true" : "false"; }
};

std::string object_text(const ArgumentList& arguments) {
  std::string text = "{";
  for (const Argument& argument : arguments) {
    text += text.size() > 1 ? "," : "";
    text += fmt::format("{}:{}", argument.name, std::visit(ValueText(), argument.value));
  }
  return text + "}";
}

std::string list_text(std::span<const std::string_view> list) {
  std::string text = "[";
  for (const std::string_view item : list) {
    text += text.size() > 1 ? "," : "";
    text += in_quotes(item);
  }
  return text + "]";
}

std::string parameter_text(const ToolParameter& parameter) {
  std::string text =
      fmt::format("{}:{{description:{}", parameter.name, in_quotes(parameter.description));
  if (!parameter.choices.empty()) {
    text += ",enum:" + list_text(parameter.choices);
  }
  return text + fmt::format(",type:{}}}", in_quotes(parameter.type));
}

std::string declaration(const Tool& tool) {
  std::string text = fmt::format(
      "<|tool>declaration:{}{{description:{},parameters:{{properties:{{",
      tool.name,
      in_quotes(tool.description)
  );
  for (size_t i = 0; i < tool.parameters.size(); ++i) {
    text += i > 0 ? "," : "";
    text += parameter_text(tool.parameters[i]);
  }
  return text +
         fmt::format(
             "}},required:{},type:{}}}}}<tool|>", list_text(tool.required), in_quotes("OBJECT")
         );
}

}  // namespace

double Choices::uniform() {
  return unit_interval(philox_words(seed_, dialogue_, kPurpose, drawn_++)[0]);
}

int64_t Choices::number(int64_t least, int64_t most) {
  const auto count = static_cast<double>(most - least + 1);
  return least + std::min(most - least, static_cast<int64_t>(uniform() * count));
}

bool Choices::happens(double share) {
  return uniform() < share;
}

std::string_view Choices::of(std::span<const std::string_view> list) {
  return list[static_cast<size_t>(number(0, std::ssize(list) - 1))];
}

void Dialogue::system(std::string_view text, std::span<const Tool> tools) {
  if (text.empty() && tools.empty() && !thinks_) {
    return;
  }
  text_ += "<|turn>system\n";
  text_ += thinks_ ? "<|think|>\n" : "";
  text_ += text;
  for (const Tool& tool : tools) {
    text_ += declaration(tool);
  }
  text_ += "<turn|>\n";
}

void Dialogue::user(std::string_view text) {
  text_ += fmt::format("<|turn>user\n{}<turn|>\n", text);
}

void Dialogue::open_reply(std::string_view thought) {
  text_ += "<|turn>model\n";
  if (thinks_) {
    text_ += fmt::format("<|channel>thought\n{}<channel|>", thought);
  }
}

void Dialogue::say(std::string_view text) {
  text_ += text;
}

void Dialogue::call(
    std::string_view name, const ArgumentList& arguments, const ArgumentList& response
) {
  text_ += fmt::format("<|tool_call>call:{}{}<tool_call|>", name, object_text(arguments));
  text_ +=
      fmt::format("<|tool_response>response:{}{}<tool_response|>", name, object_text(response));
}

void Dialogue::close_reply() {
  text_ += "<turn|>\n";
}

void Dialogue::reply(std::string_view thought, std::string_view text) {
  open_reply(thought);
  say(text);
  close_reply();
}

}  // namespace octet::train
