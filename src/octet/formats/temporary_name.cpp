#include "octet/formats/temporary_name.h"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <mutex>
#include <optional>
#include <set>
#include <sys/types.h>
#include <unistd.h>

#include <fmt/format.h>

namespace octet {
namespace {

constexpr std::string_view kSuffix = ".partial";

/// The numbers that are in use.
class Numbers {
 public:
  int take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken_.insert(next_);
    return next_++;
  }
  void give_back(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    taken_.erase(number);
  }
  bool is_taken(int number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return taken_.contains(number);
  }

 private:
  std::mutex mutex_;
  std::set<int> taken_;
  int next_ = 0;
};

Numbers& numbers() {
  static Numbers instance;
  return instance;
}

struct Writer {
  pid_t process = 0;
  int number = 0;
};

std::optional<Writer> writer_of(std::string_view name, std::string_view output) {
  if (name.size() <= output.size() + 1 + kSuffix.size() || !name.starts_with(output) ||
      name[output.size()] != '.' || !name.ends_with(kSuffix)) {
    return std::nullopt;
  }
  const char* begin = name.data() + output.size() + 1;
  const char* end = name.data() + name.size() - kSuffix.size();
  Writer writer;
  const auto [dash, error] = std::from_chars(begin, end, writer.process);
  if (error != std::errc() || dash == end || *dash != '-' || writer.process <= 0) {
    return std::nullopt;
  }
  const auto [rest, number_error] = std::from_chars(dash + 1, end, writer.number);
  if (number_error != std::errc() || rest != end || writer.number < 0) {
    return std::nullopt;
  }
  // Other files may be called alike, "2024-01" say.
  const bool as_written =
      name.substr(output.size() + 1, name.size() - output.size() - 1 - kSuffix.size()) ==
      fmt::format("{}-{}", writer.process, writer.number);
  return as_written ? std::optional<Writer>(writer) : std::nullopt;
}

bool is_running(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

}  // namespace

TemporaryName::TemporaryName(const std::string& path)
    : number_(numbers().take()),
      path_(fmt::format("{}.{}-{}{}", path, ::getpid(), number_, kSuffix)) {}

TemporaryName::~TemporaryName() {
  numbers().give_back(number_);
}

void TemporaryName::renew(const std::string& path) {
  numbers().give_back(number_);
  number_ = numbers().take();
  path_ = fmt::format("{}.{}-{}{}", path, ::getpid(), number_, kSuffix);
}

bool is_abandoned_temporary(std::string_view name, std::string_view output) {
  const std::optional<Writer> writer = writer_of(name, output);
  if (!writer) {
    return false;
  }
  return writer->process == ::getpid() ? !numbers().is_taken(writer->number)
                                       : !is_running(writer->process);
}

}  // namespace octet
