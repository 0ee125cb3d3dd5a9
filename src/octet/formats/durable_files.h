// What writers of files share below AtomicFile, JournalFile and folders: whole writes, and names
// that are on disk. Reports failures as the system does, in errno: who calls knows the file and
// what it was doing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace octet {

/// The folder that holds `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// Writes all bytes, in as many calls as it takes. False with errno set when one fails.
bool write_fully(int descriptor, std::span<const std::byte> bytes);

/// Makes the names in a folder durable. A file system that cannot do that is not an error.
void sync_folder(const std::filesystem::path& folder);

/// Syncs an open file and gives it its name. Null, or what failed, with errno set.
const char* publish_file(
    int descriptor, const std::filesystem::path& from, const std::filesystem::path& to
);

}  // namespace octet
