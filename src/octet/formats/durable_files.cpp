#include "octet/formats/durable_files.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

namespace octet {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
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
