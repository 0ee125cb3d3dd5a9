// octet on a terminal of its own, as a person has it: keys in, screen out.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <pty.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "support/run_program.h"

namespace octet::test {

class TerminalSession {
 public:
  explicit TerminalSession(const std::vector<std::string>& arguments, bool color = true) {
    const winsize size = {.ws_row = 40, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
    process_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (process_ == 0) {
      setenv("TERM", "xterm", 1);  // NOLINT(concurrency-mt-unsafe): one thread after fork
      if (color) {
        unsetenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
      } else {
        setenv("NO_COLOR", "1", 1);  // NOLINT(concurrency-mt-unsafe)
      }
      become_octet(arguments);
    }
  }

  ~TerminalSession() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    close(terminal_);
  }
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  void press(std::string_view keys) const {
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }

  /// Waits until `text` stands on the screen behind what was waited for before. What stands
  /// between.
  std::string wait_for(std::string_view text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      const size_t at = screen_.find(text, seen_);
      if (at != std::string::npos) {
        std::string between = screen_.substr(seen_, at - seen_);
        seen_ = at + text.size();
        return between;
      }
      if (!read_more()) {
        break;
      }
    }
    ADD_FAILURE() << "'" << text << "' did not come after: " << screen_.substr(seen_);
    return {};
  }

  /// The exit code; 128 + signal when it was killed, as it is when it does not end.
  int exit_code() {
    while (read_more()) {
    }
    int status = 0;
    for (int i = 0; waitpid(process_, &status, WNOHANG) == 0; ++i) {
      if (i == 100) {
        kill(process_, SIGKILL);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    process_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  const std::string& screen() const { return screen_; }

 private:
  /// False at the end, or after 20 silent seconds.
  bool read_more() {
    pollfd wait = {.fd = terminal_, .events = POLLIN, .revents = 0};
    char buffer[4096];  // NOLINT(modernize-avoid-c-arrays)
    if (poll(&wait, 1, 20'000) != 1) {
      return false;
    }
    const ssize_t count = read(terminal_, buffer, sizeof buffer);
    if (count <= 0) {
      return false;
    }
    screen_.append(buffer, static_cast<size_t>(count));
    return true;
  }

  pid_t process_ = 0;
  int terminal_ = -1;
  std::string screen_;
  size_t seen_ = 0;
};

}  // namespace octet::test
