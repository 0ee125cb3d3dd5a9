// What writers of files share below AtomicFile, JournalFile and folders: whole writes, and names
// that are on disk. Reports failures of the system as it does, in errno: who calls knows the file
// and what it was doing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace octet {

/// The folder that holds `path`; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

/// Throws Error(kInvalidArgument) when `path` is there and is no regular file: renaming onto a
/// device, a pipe or a link would take its name away from it.
void require_replaceable(const std::filesystem::path& path);

/// Writes all bytes, in as many calls as it takes. False with errno set when one fails.
bool write_fully(int descriptor, std::span<const std::byte> bytes);

/// Makes the names in a folder durable. A file system that cannot do that is not an error.
void sync_folder(const std::filesystem::path& folder);

/// Syncs an open file and gives it its name. Null, or what failed, with errno set.
const char* publish_file(
    int descriptor, const std::filesystem::path& from, const std::filesystem::path& to
);

}  // namespace octet
