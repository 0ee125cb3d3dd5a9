#include "octet/cli/program_output.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "octet/base/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks for it

namespace octet::cli {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& program, const std::string& what) {
  throw Error(ErrorKind::kIo, fmt::format("{} {}", program, what));
}

/// Both ends of a pipe, closed at the end; not inherited.
class Pipe {
 public:
  explicit Pipe(const std::string& program) {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) {
      fail(program, fmt::format("cannot be given a pipe: {}", std::strerror(errno)));
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_end(size_t end) {
    if (ends_.at(end) >= 0) {
      close(ends_.at(end));
      ends_.at(end) = -1;
    }
  }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

/// Runs until it is reaped.
class Child {
 public:
  Child(const std::vector<std::string>& command, const Pipe& input, const Pipe& output) {
    std::vector<std::string> words = command;
    std::vector<char*> list;
    list.reserve(words.size() + 1);
    for (std::string& word : words) {
      list.push_back(word.data());
    }
    list.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input.reading(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.writing(), STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);  // ours is ignored meanwhile, which a program would inherit
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawnp(&process_, list[0], &actions, &attributes, list.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      fail(command[0], fmt::format("cannot be started: {}", std::strerror(error)));
    }
  }
  ~Child() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Its status, once it has ended by itself by then; nullopt: it goes on.
  std::optional<int> wait_until(Clock::time_point end) {
    int status = 0;
    while (waitpid(process_, &status, WNOHANG) != process_) {
      if (Clock::now() >= end) {
        return std::nullopt;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    process_ = 0;
    return status;
  }

 private:
  pid_t process_ = 0;
};

/// Writing to a program that does not read must not end ours.
class IgnoreBrokenPipes {
 public:
  IgnoreBrokenPipes() { sigaction(SIGPIPE, &ignore_, &previous_); }
  ~IgnoreBrokenPipes() { sigaction(SIGPIPE, &previous_, nullptr); }
  IgnoreBrokenPipes(const IgnoreBrokenPipes&) = delete;
  IgnoreBrokenPipes& operator=(const IgnoreBrokenPipes&) = delete;

 private:
  struct sigaction ignore_ = [] {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    return action;
  }();
  struct sigaction previous_ {};
};

[[noreturn]] void fail_late(const std::string& program, ProgramLimits limits) {
  fail(program, fmt::format("gave no answer within {} ms", limits.timeout_ms));
}

/// How a program is spoken with.
struct Exchange {
  const std::string& program;
  ProgramLimits limits;
  Clock::time_point end;
};

/// Feeds and reads at once until the program closes its output.
std::string exchange_texts(const Exchange& with, std::string_view input, Pipe& to, Pipe& from) {
  const auto& [program, limits, end] = with;
  std::string output;
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      fail_late(program, limits);
    }
    if (input.empty()) {
      to.close_end(1);
    }
    std::array<pollfd, 2> waits = {
        {{.fd = from.reading(), .events = POLLIN, .revents = 0},
         {.fd = to.writing(), .events = POLLOUT, .revents = 0}}};
    if (poll(waits.data(), waits.size(), static_cast<int>(left)) < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail(program, fmt::format("cannot be waited for: {}", std::strerror(errno)));
    }
    if (waits[1].revents != 0) {
      const ssize_t written = write(to.writing(), input.data(), input.size());
      if (written >= 0) {
        input.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EAGAIN && errno != EINTR) {
        input = {};  // it does not care for its input
      }
    }
    if (waits[0].revents != 0) {
      const ssize_t count = read(from.reading(), buffer.data(), buffer.size());
      if (count == 0) {
        return output;
      }
      output.append(buffer.data(), static_cast<size_t>(count > 0 ? count : 0));
      if (output.size() > limits.output_bytes) {
        fail(program, fmt::format("answers with more than {} bytes", limits.output_bytes));
      }
    }
  }
}

}  // namespace

std::string program_output(
    const std::vector<std::string>& command, std::string_view input, ProgramLimits limits
) {
  if (command.empty()) {
    throw Error(ErrorKind::kInvalidArgument, "a command has no program");
  }
  Pipe to(command[0]);
  Pipe from(command[0]);
  const IgnoreBrokenPipes quiet;
  Child child(command, to, from);
  to.close_end(0);
  from.close_end(1);
  fcntl(to.writing(), F_SETFL, O_NONBLOCK);
  const auto end = Clock::now() + std::chrono::milliseconds(limits.timeout_ms);
  std::string output = exchange_texts({command[0], limits, end}, input, to, from);
  const std::optional<int> status = child.wait_until(end);
  if (!status) {
    fail_late(command[0], limits);
  }
  if (!WIFEXITED(*status) || WEXITSTATUS(*status) != 0) {
    fail(
        command[0],
        WIFEXITED(*status) ? fmt::format("ended with exit code {}", WEXITSTATUS(*status))
                           : fmt::format("was ended by signal {}", WTERMSIG(*status))
    );
  }
  return output;
}

}  // namespace octet::cli
