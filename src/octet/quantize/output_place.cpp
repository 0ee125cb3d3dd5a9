#include "octet/quantize/output_place.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/durable_files.h"
#include "octet/formats/temporary_name.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kReserveBytes = int64_t{64} << 20;  // headers, and room for the rest of the world

void remove_abandoned(const fs::path& output) {
  const std::string name = output.filename().string();
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(output), ignored)) {
    if (is_abandoned_temporary(entry.path().filename().string(), name)) {
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

/// `path` without slashes at its end.
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

/// What is removed with a folder must be a checkpoint, as what replaces it is: a slip of the name
/// must not cost anybody their home.
void refuse_to_remove(const fs::path& output, OutputKind kind) {
  std::error_code ignored;
  if (kind == OutputKind::kFile || !fs::is_directory(output, ignored)) {
    require_replaceable(output);
    return;
  }
  if (!fs::is_empty(output, ignored) && !fs::exists(output / "config.json", ignored)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{}: is a folder without a checkpoint, which --force does not replace; name another "
            "output, or remove the folder yourself",
            output.string()
        )
    );
  }
}

/// Swaps two names at once, so that one of the two contents has each at any time. False where the
/// file system cannot.
bool exchange_paths(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

[[noreturn]] void fail(const std::string& path, std::string_view action, std::error_code reason) {
  throw Error(
      ErrorKind::kIo, fmt::format("{}: cannot {} the folder: {}", path, action, reason.message())
  );
}

/// The old content steps aside, under a name that nobody clears away, and comes back when the new
/// one cannot take its place.
void replace_in_steps(const std::string& from, const std::string& to) {
  const std::string aside = TemporaryName(to).path() + ".old";
  std::error_code failed;
  fs::rename(to, aside, failed);
  if (failed) {
    fail(to, "rename", failed);
  }
  fs::rename(from, to, failed);
  std::error_code back;
  if (!failed) {
    fs::remove_all(aside, back);
    return;
  }
  fs::rename(aside, to, back);
  fail(back ? fmt::format("{} (what was there is {} now)", to, aside) : to, "rename", failed);
}

}  // namespace

void prepare_output(
    const std::vector<std::string>& inputs,
    const std::string& output,
    int64_t bytes,
    ExistingOutput existing,
    OutputKind kind
) {
  const fs::path path(without_slashes(output));
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
  if (fs::exists(fs::symlink_status(path, ignored))) {
    for (const std::string& input : inputs) {
      refuse_to_replace(input, path);
    }
    refuse_to_remove(path, kind);
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

void refuse_one_place_twice(const std::vector<std::string>& outputs, std::string_view names) {
  std::error_code ignored;
  std::set<fs::path> places;
  for (const std::string& output : outputs) {
    if (!output.empty() && !places.insert(fs::weakly_canonical(output, ignored)).second) {
      throw Error(
          ErrorKind::kInvalidArgument,
          fmt::format("{}: {} name the same file; give each a file of its own", output, names)
      );
    }
  }
}

AtomicFolder::AtomicFolder(const std::string& path)
    : path_(without_slashes(path)), temporary_(path_) {
  std::error_code failed;
  while (!fs::create_directory(temporary_.path(), failed)) {
    if (failed && failed != std::errc::file_exists) {
      fail(path_, "create", failed);
    }
    temporary_.renew(path_);
  }
}

AtomicFolder::~AtomicFolder() {
  if (!finished_) {
    std::error_code ignored;
    fs::remove_all(temporary_.path(), ignored);
  }
}

void AtomicFolder::finish() {
  sync_folder(temporary_.path());
  std::error_code failed;
  const bool replaces = fs::exists(path_);
  const bool exchanged = replaces && exchange_paths(temporary_.path(), path_);
  if (!replaces) {
    fs::rename(temporary_.path(), path_, failed);
  } else if (!exchanged) {
    replace_in_steps(temporary_.path(), path_);
  }
  if (failed) {
    fail(path_, "rename", failed);
  }
  finished_ = true;
  sync_folder(folder_of(path_));
  if (exchanged) {
    fs::remove_all(temporary_.path(), failed);  // the old content now
  }
}

}  // namespace octet
