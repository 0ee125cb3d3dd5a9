#include <array>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/interrupt.h"
#include "octet/cli/reply.h"

namespace octet::cli {
namespace {

constexpr const char* kHelp =
    "  /help    this list\n"
    "  /reset   forget the conversation\n"
    "  /stats   figures so far\n"
    "  /quit    leave (so does Ctrl-D); Ctrl-C stops a reply\n";

class Conversation {
 public:
  Conversation(Pair& pair, const ReplyOptions& options)
      : pair_(pair),
        options_(options),
        template_(load_chat_template(*pair.target_checkpoint)),
        replier_(pair, options),
        stream_(options.marks) {
    reset();
  }

  void reset() {
    messages_.clear();
    if (!options_.system.empty()) {
      messages_.push_back({ChatRole::kSystem, options_.system});
    }
  }

  void say(const std::string& text) {
    messages_.push_back({ChatRole::kUser, text});
    const InterruptGuard interrupt;
    try {
      Reply reply = replier_.reply(
          encode_chat(template_, *pair_.tokenizer, messages_, chat_options(options_)),
          &stream_,
          interrupt.flag()
      );
      messages_.push_back({ChatRole::kAssistant, std::move(reply.speech)});
    } catch (const Error& error) {
      messages_.pop_back();  // the conversation is as it was before this message
      fmt::print(stderr, "octet: {}\n", error.what());
    }
  }

  void print_figures() const { print_summary(pair_, replier_, stream_); }
  bool spoke() const { return replier_.statistics().replies > 0; }

 private:
  Pair& pair_;
  const ReplyOptions& options_;
  ChatTemplate template_;
  Replier replier_;
  TextStream stream_;
  std::vector<ChatMessage> messages_;
};

/// The next line, nullopt at the end. Lines that come from a file or a pipe are shown, so that a
/// log reads as a talk.
std::optional<std::string> next_line(bool interactive) {
  if (interactive) {
    fmt::print("> ");
    std::fflush(stdout);
  }
  std::string line;
  if (!std::getline(std::cin, line)) {
    return std::nullopt;
  }
  if (!interactive) {
    fmt::print("> {}\n", line);
    std::fflush(stdout);
  }
  return line;
}

/// False when the conversation is over.
bool handle(Conversation& conversation, const std::string& line) {
  if (line == "/quit" || line == "/exit") {
    return false;
  }
  if (line == "/reset") {
    conversation.reset();
  } else if (line == "/stats") {
    conversation.print_figures();
  } else if (line == "/help") {
    fmt::print("{}", kHelp);
  } else if (line.front() == '/') {
    fmt::print(stderr, "octet: there is no {}; /help lists what there is\n", line);
  } else {
    conversation.say(line);
  }
  return true;
}

}  // namespace

int chat(const ChatArguments& arguments) {
  Pair pair = load_pair(arguments.pair);
  Conversation conversation(pair, arguments.reply);
  const bool interactive = isatty(STDIN_FILENO) == 1;
  if (interactive && !arguments.reply.quiet) {
    fmt::print("Type a message. /help lists the commands.\n");
  }
  while (const std::optional<std::string> line = next_line(interactive)) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    if (!handle(conversation, *line)) {
      break;
    }
  }
  if (interactive) {
    fmt::print("\n");
  }
  if (conversation.spoke() && !arguments.reply.quiet) {
    conversation.print_figures();
  }
  return 0;
}

}  // namespace octet::cli
