#include "octet/formats/durable_files.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

void require_replaceable(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(
        ErrorKind::kInvalidArgument,
        fmt::format(
            "{}: is {}; name a file",
            path.string(),
            std::filesystem::is_directory(status) ? "a folder"
            : std::filesystem::is_symlink(status) ? "a link"
                                                  : "a device, a pipe or a socket"
        )
    );
  }
}

bool write_fully(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

const char* publish_file(
    int descriptor, const std::filesystem::path& from, const std::filesystem::path& to
) {
  if (::fsync(descriptor) != 0) {
    return "sync";
  }
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return "rename";
  }
  sync_folder(folder_of(to));
  return nullptr;
}

}  // namespace octet
