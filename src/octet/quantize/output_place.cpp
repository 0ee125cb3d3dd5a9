#include "octet/quantize/output_place.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/durable_files.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartialSuffix = ".partial";
constexpr int64_t kReserveBytes = int64_t{64} << 20;  // headers, and room for the rest of the world

/// The process that writes under this temporary name ("<output>.<process>-<n>.partial"), or nullopt
/// for a name of another kind.
std::optional<pid_t> writer_of(std::string_view name, std::string_view output) {
  if (name.size() <= output.size() + 1 + kPartialSuffix.size() || !name.starts_with(output) ||
      name[output.size()] != '.' || !name.ends_with(kPartialSuffix)) {
    return std::nullopt;
  }
  const char* begin = name.data() + output.size() + 1;
  const char* end = name.data() + name.size();
  pid_t process = 0;
  const auto [rest, error] = std::from_chars(begin, end, process);
  if (error != std::errc() || rest == end || *rest != '-' || process <= 0) {
    return std::nullopt;
  }
  return process;
}

bool is_running(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

void remove_abandoned(const fs::path& output) {
  const std::string name = output.filename().string();
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(output), ignored)) {
    const std::optional<pid_t> writer = writer_of(entry.path().filename().string(), name);
    if (writer && !is_running(*writer)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

void require_space(const fs::path& output, int64_t bytes) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder_of(output), failed);
  if (failed) {
    return;  // a file system that does not say; writing will tell
  }
  const auto available = static_cast<int64_t>(space.available);
  if (available < bytes + kReserveBytes) {
    throw Error(
        ErrorKind::kResourceExhausted,
        fmt::format(
            "{}: {:.2f} GB are needed and {:.2f} GB are free; make room or write elsewhere",
            output.string(),
            static_cast<double>(bytes + kReserveBytes) * 1e-9,
            static_cast<double>(available) * 1e-9
        )
    );
  }
}

void refuse_to_replace(const fs::path& input, const fs::path& output) {
  std::error_code ignored;
  if (fs::equivalent(input, output, ignored)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("{}: output and input are the same; name another output", output.string())
    );
  }
  const fs::path inside = fs::weakly_canonical(input, ignored);
  const fs::path folder = fs::canonical(output, ignored);
  const auto [end, unused] =
      std::mismatch(folder.begin(), folder.end(), inside.begin(), inside.end());
  if (!folder.empty() && end == folder.end()) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{}: holds {}, which would be lost; name another output",
            output.string(),
            input.string()
        )
    );
  }
}

[[noreturn]] void fail(const std::string& path, std::string_view action, std::error_code reason) {
  throw Error(
      ErrorKind::kIo, fmt::format("{}: cannot {} the folder: {}", path, action, reason.message())
  );
}

}  // namespace

void prepare_output(
    const std::vector<std::string>& inputs,
    const std::string& output,
    int64_t bytes,
    ExistingOutput existing
) {
  const fs::path path(output);
  std::error_code ignored;
  if (path.filename().empty() || path.filename() == "." || path.filename() == "..") {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format("'{}' names no new file or folder; give a name", output)
    );
  }
  if (!fs::is_directory(folder_of(path), ignored)) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{}: its folder does not exist; create {}", output, folder_of(path).string())
    );
  }
  if (fs::exists(path, ignored)) {
    for (const std::string& input : inputs) {
      refuse_to_replace(input, path);
    }
    if (existing == ExistingOutput::kRefuse) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("{}: exists already; add --force to replace it", output)
      );
    }
  }
  remove_abandoned(path);
  require_space(path, bytes);
}

AtomicFolder::AtomicFolder(std::string path) : path_(std::move(path)) {
  while (path_.size() > 1 && path_.back() == '/') {
    path_.pop_back();
  }
  temporary_path_ = fmt::format("{}.{}-0{}", path_, ::getpid(), kPartialSuffix);
  std::error_code failed;
  if (!fs::create_directory(temporary_path_, failed)) {
    fail(path_, "create", failed ? failed : std::make_error_code(std::errc::file_exists));
  }
}

AtomicFolder::~AtomicFolder() {
  if (!finished_) {
    std::error_code ignored;
    fs::remove_all(temporary_path_, ignored);
  }
}

void AtomicFolder::finish() {
  sync_folder(temporary_path_);
  std::error_code failed;
  // A folder cannot replace one that holds files: the old one steps aside first.
  const std::string old = fmt::format("{}.{}-1{}", path_, ::getpid(), kPartialSuffix);
  const bool replaces = fs::exists(path_);
  if (replaces) {
    fs::rename(path_, old, failed);
  }
  if (!failed) {
    fs::rename(temporary_path_, path_, failed);
  }
  if (failed) {
    fail(path_, "rename", failed);
  }
  finished_ = true;
  sync_folder(folder_of(path_));
  if (replaces) {
    fs::remove_all(old, failed);
  }
}

}  // namespace octet
