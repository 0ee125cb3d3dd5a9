#include "octet/cli/line_editor.h"

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <histedit.h>
#include <iostream>
#include <langinfo.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet::cli {
namespace {

constexpr int kMostLines = 1000;
constexpr std::string_view kPasteBegin = "\x1b[?2004h";  // the terminal marks what is pasted
constexpr std::string_view kPasteEnd = "\x1b[?2004l";
constexpr std::wstring_view kPasteClose = L"\x1b[201~";

/// libedit reads characters in the user's encoding; where there is none, bytes above 127 would be
/// refused.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");  // NOLINT(concurrency-mt-unsafe): before anything else reads it
  if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
    std::setlocale(LC_CTYPE, "C.UTF-8");  // NOLINT(concurrency-mt-unsafe)
  }
}

}  // namespace

struct LineEditor::Terminal {
  EditLine* edit = nullptr;
  History* history = nullptr;
  FILE* screen = nullptr;
  std::string prompt;
  bool interrupted = false;
  bool thrown_away = false;  // the interrupted line was not empty

  explicit Terminal(FILE* out) : screen(out) {
    use_utf8();
    edit = el_init("octet", stdin, screen, stderr);
    history = history_init();
    if (edit == nullptr || history == nullptr) {
      throw Error(ErrorKind::kIo, "the terminal cannot be edited on; pipe the lines in instead");
    }
    HistEvent event{};
    ::history(history, &event, H_SETSIZE, kMostLines);
    ::history(history, &event, H_SETUNIQUE, 1);
    el_set(edit, EL_CLIENTDATA, this);
    el_set(edit, EL_PROMPT, &Terminal::show_prompt);
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_SIGNAL, 1);  // suspension and the window's size
    el_set(edit, EL_HIST, ::history, history);
    el_set(edit, EL_ADDFN, "octet-interrupt", "throw the line away", &Terminal::interrupt);
    el_set(edit, EL_ADDFN, "octet-suspend", "stop the program", &Terminal::suspend);
    el_set(edit, EL_ADDFN, "octet-break", "break the line", &Terminal::break_line);
    el_set(edit, EL_ADDFN, "octet-paste", "take what is pasted", &Terminal::paste);
    el_set(edit, EL_ADDFN, "octet-end", "delete, or end on an empty line", &Terminal::end);
    el_source(edit, nullptr);  // the person's own ~/.editrc
    // While a line is edited, keys are no signals: one that comes just before libedit waits for the
    // next key would be lost.
    el_set(edit, EL_SETTY, "-d", "-isig", nullptr);
    for (const auto& [key, function] :
         {std::pair{"^C", "octet-interrupt"},
          {"^Z", "octet-suspend"},
          {"^D", "octet-end"},
          {"\\e^M", "octet-break"},
          {"\\e^J", "octet-break"},
          {"\\e[200~", "octet-paste"},
          {"\\e[3~", "ed-delete-next-char"},
          {"\\e[1;5C", "em-next-word"},
          {"\\e[1;5D", "ed-prev-word"},
          {"^R", "em-inc-search-prev"}}) {
      el_set(edit, EL_BIND, key, function, nullptr);
    }
  }

  ~Terminal() {
    if (history != nullptr) {
      history_end(history);
    }
    if (edit != nullptr) {
      el_end(edit);
    }
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static Terminal& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<Terminal*>(self);
  }

  static char* show_prompt(EditLine* edit) { return of(edit).prompt.data(); }

  static unsigned char interrupt(EditLine* edit, int /*key*/) {
    const LineInfoW* line = el_wline(edit);
    of(edit).interrupted = true;
    of(edit).thrown_away = line->buffer != line->lastchar;
    return CC_NEWLINE;
  }

  static unsigned char suspend(EditLine* /*edit*/, int /*key*/) {
    std::raise(SIGTSTP);
    return CC_REDISPLAY;
  }

  static unsigned char break_line(EditLine* edit, int /*key*/) {
    return el_insertstr(edit, "\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char end(EditLine* edit, int /*key*/) {
    const LineInfoW* line = el_wline(edit);
    if (line->buffer == line->lastchar) {
      return CC_EOF;
    }
    if (line->cursor == line->lastchar) {
      return CC_ERROR;
    }
    el_cursor(edit, 1);
    el_deletestr(edit, 1);
    return CC_REFRESH;
  }

  /// All of it, line breaks too, becomes part of the line.
  static unsigned char paste(EditLine* edit, int /*key*/) {
    std::wstring text;
    wchar_t next = 0;
    while (!text.ends_with(kPasteClose) && el_wgetc(edit, &next) == 1) {
      text += next == L'\r' ? L'\n' : next;
    }
    if (text.ends_with(kPasteClose)) {
      text.resize(text.size() - kPasteClose.size());
    }
    return el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  void show(std::string_view text) const {
    std::fwrite(text.data(), 1, text.size(), screen);
    std::fflush(screen);
  }

  Line read() {
    interrupted = false;
    // Before the prompt is there: what is typed at once must not meet the usual mode.
    el_set(edit, EL_PREP_TERM, 1);
    show(kPasteBegin);
    int count = 0;
    const char* text = el_gets(edit, &count);
    show(kPasteEnd);
    if (interrupted) {
      return {Kind::kInterrupted, thrown_away ? "..." : ""};
    }
    if (text == nullptr && count < 0 && errno == EINTR) {
      show("\n");
      return {Kind::kInterrupted, {}};  // a signal from elsewhere
    }
    if (text == nullptr || count <= 0) {
      return {Kind::kEnd, {}};
    }
    Line line{Kind::kText, std::string(text, static_cast<size_t>(count))};
    if (line.text.ends_with('\n')) {
      line.text.pop_back();
    }
    return line;
  }
};

LineEditor::LineEditor(std::string history_file) : history_file_(std::move(history_file)) {
  if (isatty(STDIN_FILENO) != 1) {
    return;
  }
  // The text alone goes into a pipe; then the lines are edited beside it.
  terminal_ = std::make_unique<Terminal>(isatty(STDOUT_FILENO) == 1 ? stdout : stderr);
  if (!history_file_.empty() && std::filesystem::exists(history_file_)) {
    HistEvent event{};
    if (history(terminal_->history, &event, H_LOAD, history_file_.c_str()) < 0) {
      throw Error(ErrorKind::kIo, fmt::format("{}: not a history of lines", history_file_));
    }
  }
}

LineEditor::~LineEditor() {
  if (terminal_ == nullptr || history_file_.empty()) {
    return;
  }
  // For its owner alone: people type secrets.
  const int file = open(history_file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) {
    close(file);
  }
  HistEvent event{};
  if (history(terminal_->history, &event, H_SAVE, history_file_.c_str()) < 0) {
    fmt::print(stderr, "octet: {}: the lines could not be kept\n", history_file_);
  }
}

bool LineEditor::interactive() const {
  return terminal_ != nullptr;
}

LineEditor::Line LineEditor::read(const std::string& prompt) {
  if (terminal_ != nullptr) {
    terminal_->prompt = prompt;
    return terminal_->read();
  }
  Line line{Kind::kText, {}};
  if (!std::getline(std::cin, line.text)) {
    return {Kind::kEnd, {}};
  }
  fmt::print("{}{}\n", prompt, line.text);
  std::fflush(stdout);
  return line;
}

void LineEditor::remember(const std::string& text) {
  if (terminal_ != nullptr) {
    HistEvent event{};
    history(terminal_->history, &event, H_ENTER, text.c_str());
  }
}

}  // namespace octet::cli
