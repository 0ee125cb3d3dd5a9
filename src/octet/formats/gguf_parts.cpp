// Split GGUF files: finding and joining the parts.

#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/gguf_reader.h"
#include "octet/formats/message_text.h"

namespace octet {

namespace {

constexpr int64_t kMaxParts = 99999;

/// What stands before "-00001-of-00003.gguf", or nullopt when `path` is not named so.
std::optional<std::string> part_prefix(const std::string& path, int64_t index, int64_t count) {
  const std::string suffix = gguf_part_path("", static_cast<int>(index), static_cast<int>(count));
  if (!path.ends_with(suffix)) {
    return std::nullopt;
  }
  return path.substr(0, path.size() - suffix.size());
}

void check_part(const GgufFile& part, int64_t index, int64_t count) {
  const std::optional<int64_t> found_index = part.metadata.find_integer("split.no");
  const std::optional<int64_t> found_count = part.metadata.find_integer("split.count");
  if (found_index != index || found_count != count) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "says that it is part {} of {}; expected part {} of {} (keys split.no and split.count)",
            found_index.value_or(-1),
            found_count.value_or(-1),
            index,
            count
        )
    );
  }
}

void check_tensors(const std::vector<GgufFile>& parts) {
  std::set<std::string_view> names;
  int64_t found = 0;
  for (const GgufFile& part : parts) {
    for (const GgufTensor& tensor : part.tensors) {
      if (!names.insert(tensor.name).second) {
        throw Error(
            ErrorKind::kMalformed,
            fmt::format(
                "{}: tensor {} is already in an earlier part", part.path, shown(tensor.name)
            )
        );
      }
      ++found;
    }
  }
  const int64_t expected = parts.front().metadata.integer("split.tensors.count");
  if (found != expected) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: the parts hold {} tensors, but split.tensors.count is {}",
            parts.front().path,
            found,
            expected
        )
    );
  }
}

/// `named`, part `index` of `count` with the path prefix `prefix`, and all the others.
std::vector<GgufFile> read_siblings(
    GgufFile named, const std::string& prefix, int64_t index, int64_t count
) {
  std::vector<GgufFile> parts;
  for (int64_t i = 0; i < count; ++i) {
    const std::string path = gguf_part_path(prefix, static_cast<int>(i), static_cast<int>(count));
    parts.push_back(i == index ? GgufFile() : read_gguf(path));
    GgufFile& part = parts.back();
    if (i == index) {
      std::swap(part, named);
    }
    try {
      check_part(part, i, count);
    } catch (Error& error) {
      error.add_context(path);
      throw;
    }
  }
  check_tensors(parts);
  return parts;
}

}  // namespace

std::string gguf_part_path(std::string_view prefix, int index, int count) {
  return fmt::format("{}-{:05d}-of-{:05d}.gguf", prefix, index + 1, count);
}

std::vector<GgufFile> read_gguf_parts(const std::string& path) {
  GgufFile named = read_gguf(path);
  try {
    const int64_t count = named.metadata.find_integer("split.count").value_or(0);
    if (count <= 1) {
      std::vector<GgufFile> single;
      single.push_back(std::move(named));
      return single;
    }
    const int64_t index = named.metadata.integer("split.no");
    if (count > kMaxParts || index < 0 || index >= count) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format("impossible part number {} of {} (split.no, split.count)", index, count)
      );
    }
    const std::optional<std::string> prefix = part_prefix(path, index, count);
    if (!prefix) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "this is part {} of {}; its name must end with '{}' so that the other parts can be "
              "found",
              index,
              count,
              gguf_part_path("", static_cast<int>(index), static_cast<int>(count))
          )
      );
    }
    return read_siblings(std::move(named), *prefix, index, count);
  } catch (Error& error) {
    error.add_context(fmt::format("split file {}", path));
    throw;
  }
}

}  // namespace octet
