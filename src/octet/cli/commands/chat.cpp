#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "octet/base/error.h"
#include "octet/base/mapped_file.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/conversation.h"
#include "octet/cli/interrupt.h"
#include "octet/cli/line_editor.h"
#include "octet/cli/reply.h"
#include "octet/cli/tool_file.h"
#include "octet/formats/atomic_file.h"
#include "octet/grammar/tool_signature.h"

namespace octet::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostToolRounds = 16;  // replies to one message
// The talk itself, and its beginning before a long thought that the next prompt leaves out.
constexpr int64_t kKeptTexts = 2;

/// What a message, or a command, is typed as.
std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  const size_t end = text.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kInvalidArgument, what);
}

void note(const std::string& text) {
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", text);
}

/// What enforces the schemas of strict tools; null where the model is free.
std::shared_ptr<const Grammar> tool_grammar(
    const ToolFile& tools, GrammarCompiler& compiler, bool thinking
) {
  ToolRules rules;
  for (const Json& tool : tools.tools()) {
    rules.tools.push_back(tool_signature(tool));
  }
  return compiler.tool_calls(rules, thinking ? ThoughtStart::kMayOpen : ThoughtStart::kNone);
}

Pair load_for_talk(const ChatArguments& arguments) {
  PairNeeds needs;
  needs.texts = texts_at_a_time(arguments.reply, kKeptTexts);
  return load_pair(arguments.pair, std::move(needs));
}

class Talk {
 public:
  explicit Talk(const ChatArguments& arguments)
      : options_(arguments.reply),
        tools_(arguments.tools_file.empty() ? ToolFile() : ToolFile(arguments.tools_file)),
        lines_(arguments.history_file),
        pair_(load_for_talk(arguments)),
        template_(load_chat_template(*pair_.target_checkpoint, options_.chat_template)),
        replier_(pair_, options_, kKeptTexts),
        stream_(options_.marks),
        conversation_(options_.system) {
    chat_options(options_);  // contradictions are told now
    if (tools_.strict()) {
      grammars_ = std::make_unique<GrammarCompiler>(pair_.tokenizer);
    }
  }

  void hold() {
    std::optional<InterruptGuard> guard;
    if (lines_.interactive()) {
      guard.emplace(InterruptGuard::Second::kSame);
      guard_ = &*guard;
      if (!options_.quiet) {
        note("Type a message. /help lists the commands.");
      }
    }
    while (!over_) {
      const LineEditor::Line message = read_message();
      if (message.kind == LineEditor::Kind::kEnd) {
        break;
      }
      if (message.kind == LineEditor::Kind::kText) {
        interruptions_ = 0;
        handle(message.text);
        continue;
      }
      interruptions_ = message.text.empty() ? interruptions_ + 1 : 1;
      if (interruptions_ > 1) {
        break;
      }
      note("(Ctrl-C again, or Ctrl-D, leaves)");
    }
    guard_ = nullptr;
    if (replier_.statistics().replies > 0 && !options_.quiet) {
      print_summary(pair_, replier_, stream_);
    }
  }

 private:
  struct Command {
    const char* name;
    const char* arguments;
    const char* help;
    void (Talk::*run)(std::string_view rest);
  };
  static std::span<const Command> commands();

  LineEditor::Line read_message();
  void handle(const std::string& text);
  void run_command(std::string_view text);
  void say(const std::string& text);
  bool converse();
  bool answer(const std::vector<ToolCall>& calls);
  std::optional<std::string> ask_person(const ToolCall& call);
  void show_figures(const Reply& reply) const;
  std::vector<TokenId> prompt() const;
  template <typename Change>
  void change_options(Change change);

  // Commands:
  void help(std::string_view rest);
  void reset(std::string_view rest);
  void undo(std::string_view rest);
  void retry(std::string_view rest);
  void system(std::string_view rest);
  void think(std::string_view rest);
  void fold(std::string_view rest);
  void thought(std::string_view rest);
  void tools(std::string_view rest);
  void draft(std::string_view rest);
  void temperature(std::string_view rest);
  void save(std::string_view rest);
  void load(std::string_view rest);
  void stats(std::string_view rest);
  void quit(std::string_view /*rest*/) { over_ = true; }

  ReplyOptions options_;
  ToolFile tools_;
  LineEditor lines_;
  Pair pair_;
  ChatTemplate template_;
  Replier replier_;
  TextStream stream_;
  Conversation conversation_;
  std::unique_ptr<GrammarCompiler> grammars_;  // null: no tool is strict
  InterruptGuard* guard_ = nullptr;            // of the whole talk, on a terminal
  std::string last_thought_;
  int interruptions_ = 0;  // in a row, with nothing typed between them
  bool over_ = false;
};

std::span<const Talk::Command> Talk::commands() {
  static constexpr std::array<Command, 16> kCommands = {{
      {"help", "", "this list", &Talk::help},
      {"reset", "", "forget the conversation; the system message stays", &Talk::reset},
      {"undo", "", "forget the last message and what was answered", &Talk::undo},
      {"retry", "", "answer the last message again, with another seed", &Talk::retry},
      {"system", "[TEXT|off]", "show or change the system message", &Talk::system},
      {"think", "on|off|N", "thoughts before speech; N: of at most so many tokens", &Talk::think},
      {"fold", "on|off", "show one line for a thought, or all of it", &Talk::fold},
      {"thought", "", "show the last thought", &Talk::thought},
      {"tools", "", "what the model may call", &Talk::tools},
      {"draft", "N|on|off", "at most so many drafts a step", &Talk::draft},
      {"temp", "X", "temperature; 0: greedy", &Talk::temperature},
      {"save", "FILE", "write the conversation, as JSON", &Talk::save},
      {"load", "FILE", "go on with a saved one", &Talk::load},
      {"stats", "", "figures so far", &Talk::stats},
      {"quit", "", "leave; so does Ctrl-D", &Talk::quit},
      {"exit", "", "leave", &Talk::quit},
  }};
  return kCommands;
}

/// Lines that end with a backslash go on with the next one.
LineEditor::Line Talk::read_message() {
  LineEditor::Line message = lines_.read("> ");
  while (message.kind == LineEditor::Kind::kText && message.text.ends_with('\\')) {
    message.text.back() = '\n';
    LineEditor::Line more = lines_.read("| ");
    if (more.kind == LineEditor::Kind::kEnd) {
      break;  // the next read says so again
    }
    if (more.kind != LineEditor::Kind::kText) {
      return more;
    }
    message.text += more.text;
  }
  if (message.kind == LineEditor::Kind::kText && !trimmed(message.text).empty()) {
    lines_.remember(message.text);
  }
  return message;
}

void Talk::handle(const std::string& text) {
  const std::string_view typed = trimmed(text);
  if (typed.empty()) {
    return;
  }
  try {
    if (typed.starts_with("//")) {
      say(std::string(typed.substr(1)));
    } else if (typed.front() == '/') {
      run_command(typed.substr(1));
    } else {
      say(text);
    }
  } catch (const Error& error) {
    note(fmt::format("octet: {}", error.what()));
  }
}

void Talk::run_command(std::string_view text) {
  const size_t end = text.find_first_of(" \t\n");
  const std::string_view name = text.substr(0, end);
  const std::string_view rest =
      end == std::string_view::npos ? std::string_view() : trimmed(text.substr(end));
  for (const Command& command : commands()) {
    if (name == command.name) {
      if (!rest.empty() && *command.arguments == '\0') {
        refuse(fmt::format("/{} takes nothing behind it", name));
      }
      (this->*command.run)(rest);
      return;
    }
  }
  refuse(fmt::format("there is no /{}; /help lists what there is, // begins a message with /", name)
  );
}

/// Nothing of a message stays that could not be answered.
void Talk::say(const std::string& text) {
  const size_t before = conversation_.size();
  conversation_.add_user(text);
  try {
    if (!converse()) {
      conversation_.cut(before);
      note("(nothing was said, so the message is forgotten)");
    }
  } catch (...) {
    conversation_.cut(before);
    throw;
  }
}

/// Replies, and answers to their calls, until the model has no more of them. False when nothing
/// came of it.
bool Talk::converse() {
  std::shared_ptr<const Grammar> grammar;
  if (grammars_ != nullptr) {
    grammar = tool_grammar(tools_, *grammars_, !options_.no_thinking);
  }
  // A name that nobody can have: without tools a call is speech.
  const std::vector<std::string> names =
      tools_.names().empty() ? std::vector<std::string>{""} : tools_.names();
  for (int round = 0; round < kMostToolRounds; ++round) {
    std::optional<InterruptGuard> own;
    InterruptGuard& guard = guard_ != nullptr ? *guard_ : own.emplace();
    guard.reset();
    const Reply reply = replier_.reply(
        {.prompt = prompt(), .tool_names = names, .grammar = grammar}, &stream_, guard.flag()
    );
    own.reset();
    last_thought_ = reply.thinking;
    show_figures(reply);
    const bool interrupted = reply.result.finish == FinishReason::kCancelled;
    const bool calls = !interrupted && !reply.calls.empty() &&
                       std::ranges::all_of(reply.calls, &ToolCall::complete);
    if (interrupted && reply.speech.empty()) {
      return false;
    }
    conversation_.add_reply(reply, calls);
    if (!calls) {
      return true;
    }
    if (!answer(reply.calls)) {
      return false;
    }
  }
  refuse(fmt::format("the model calls tools without an end; stopped after {}", kMostToolRounds));
}

/// False when the person gives no answer.
bool Talk::answer(const std::vector<ToolCall>& calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    std::optional<std::string> text = tools_.answer(calls[i].name, calls[i].arguments);
    if (text) {
      note(fmt::format("answer of {}: {}", calls[i].name, *text));
    } else {
      text = ask_person(calls[i]);
    }
    if (!text) {
      return false;
    }
    conversation_.add_answer(i, *text);
  }
  return true;
}

std::optional<std::string> Talk::ask_person(const ToolCall& call) {
  LineEditor::Line line = lines_.read(fmt::format("answer of {}> ", call.name));
  return line.kind == LineEditor::Kind::kText ? std::optional(std::move(line.text)) : std::nullopt;
}

void Talk::show_figures(const Reply& reply) const {
  if (!lines_.interactive() || options_.quiet) {
    return;
  }
  const GenerateResult& result = reply.result;
  const bool dim = wants_color(STDERR_FILENO);
  note(fmt::format(
      "{}{} tokens, {:.1f} tokens/s, {:.2f} a step; prompt {} tokens, {} reused{}{}",
      dim ? "\x1b[2m" : "",
      result.tokens.size(),
      result.tokens_per_second(),
      result.acceptance.tokens_per_step(),
      result.prompt_tokens,
      result.reused_tokens,
      result.finish == FinishReason::kStopToken
          ? std::string()
          : fmt::format("; {}", finish_reason_name(result.finish)),
      dim ? "\x1b[0m" : ""
  ));
}

std::vector<TokenId> Talk::prompt() const {
  return conversation_.prompt(template_, *pair_.tokenizer, tools_.tools(), chat_options(options_));
}

/// All or nothing: options that contradict each other are refused and stay as they were.
template <typename Change>
void Talk::change_options(Change change) {
  const ReplyOptions before = options_;
  change(options_);
  try {
    chat_options(options_);
    replier_.apply_options();
  } catch (...) {
    options_ = before;
    replier_.apply_options();
    throw;
  }
}

void Talk::help(std::string_view /*rest*/) {
  std::string text;
  for (const Command& command : commands()) {
    text += fmt::format(
        "  {:<20} {}\n", fmt::format("/{} {}", command.name, command.arguments), command.help
    );
  }
  fmt::print(
      "{}  A line that ends with \\, Alt-Return and pasted text make messages of several lines.\n"
      "  Ctrl-C stops a reply; what was said until then stays.\n",
      text
  );
  std::fflush(stdout);
}

void Talk::reset(std::string_view /*rest*/) {
  conversation_.reset();
}

void Talk::undo(std::string_view /*rest*/) {
  const std::optional<std::string> text = conversation_.undo();
  if (!text) {
    refuse("there is no message to forget");
  }
  note(fmt::format("forgotten: {}", *text));
}

void Talk::retry(std::string_view /*rest*/) {
  const std::optional<std::string> text = conversation_.undo();
  if (!text) {
    refuse("there is no message to answer again");
  }
  change_options([this](ReplyOptions& options) {
    options.sampling.seed = replier_.sampling().seed + 1;
  });
  say(*text);
}

void Talk::system(std::string_view rest) {
  if (rest.empty()) {
    const std::string text = conversation_.system();
    note(text.empty() ? "there is no system message" : text);
    return;
  }
  conversation_.set_system(rest == "off" ? std::string() : std::string(rest));
}

void Talk::think(std::string_view rest) {
  const auto budget = number_of<int64_t>(rest);
  if (rest != "on" && rest != "off" && budget.value_or(0) < 1) {
    refuse("/think takes on, off or a number of tokens");
  }
  change_options([&](ReplyOptions& options) {
    options.no_thinking = rest == "off";
    options.thinking_budget = budget;
  });
}

void Talk::fold(std::string_view rest) {
  if (rest != "on" && rest != "off") {
    refuse("/fold takes on or off");
  }
  options_.thoughts = rest == "on" ? ThoughtView::kFold : ThoughtView::kShow;
}

void Talk::thought(std::string_view /*rest*/) {
  if (last_thought_.empty()) {
    refuse("the last reply came without a thought");
  }
  stream_.write(last_thought_, TextStream::Origin::kTarget, TextStream::Part::kThinking);
  stream_.end();
}

void Talk::tools(std::string_view /*rest*/) {
  if (tools_.names().empty()) {
    refuse("there are no tools; start with --tools FILE");
  }
  for (const Json& tool : tools_.tools()) {
    const Json& function = tool["function"];
    const Json* text = function.contains("description") ? &function["description"] : nullptr;
    fmt::print(
        "  {}  {}\n",
        function["name"].get_ref<const std::string&>(),
        text != nullptr && text->is_string() ? text->get_ref<const std::string&>() : std::string()
    );
  }
  std::fflush(stdout);
}

void Talk::draft(std::string_view rest) {
  const auto most = number_of<int>(rest);
  const int given = pair_.drafter->max_drafts();
  if (rest != "on" && rest != "off" && (!most || *most < 0 || *most > given)) {
    refuse(fmt::format("/draft takes on, off or a number from 0 to {}", given));
  }
  change_options([&](ReplyOptions& options) {
    options.draft_max = rest == "on" ? std::nullopt : std::optional(most.value_or(0));
  });
}

void Talk::temperature(std::string_view rest) {
  const auto value = number_of<float>(rest);
  if (!value || !(*value >= 0.0F && *value <= 100.0F)) {
    refuse("/temp takes a number from 0 to 100");
  }
  change_options([&](ReplyOptions& options) { options.sampling.temperature = *value; });
}

void Talk::save(std::string_view rest) {
  if (rest.empty()) {
    refuse("/save takes the name of a file");
  }
  AtomicFile file{std::string(rest)};
  const std::string text = conversation_.saved();
  file.write(std::as_bytes(std::span(text)));
  file.finish();
  note(fmt::format("saved {} messages", conversation_.size()));
}

void Talk::load(std::string_view rest) {
  if (rest.empty()) {
    refuse("/load takes the name of a file");
  }
  const std::string before = conversation_.saved();
  try {
    const auto file = MappedFile::open(std::string(rest));
    conversation_.load({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
    if (conversation_.size() > 0) {
      prompt();  // the template must know what to make of it
    }
  } catch (...) {
    conversation_.load(before);
    throw;
  }
  note(fmt::format("{} messages", conversation_.size()));
}

void Talk::stats(std::string_view /*rest*/) {
  print_summary(pair_, replier_, stream_);
}

}  // namespace

int chat(const ChatArguments& arguments) {
  Talk talk(arguments);
  talk.hold();
  return 0;
}

}  // namespace octet::cli
