// Sharded safetensors: the index and its agreement with the shards.

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/json_value.h"
#include "octet/formats/message_text.h"
#include "octet/formats/safetensors_reader.h"

namespace octet {

namespace {

constexpr size_t kMaxShards = 4096;

using TensorToShard = std::map<std::string, std::string, std::less<>>;

/// A shard is a file of the same directory and nothing else: the index comes from outside.
void check_shard_name(const std::string& tensor, const std::string& shard) {
  const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                     shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format(
            "tensor {} is mapped to {}; expected a plain file name", shown(tensor), shown(shard)
        )
    );
  }
}

TensorToShard read_weight_map(const std::string& index_path) {
  const JsonValue index = read_json_object(index_path);
  const JsonObject* weight_map = index.find_object("weight_map");
  if (weight_map == nullptr || weight_map->empty()) {
    throw Error(
        ErrorKind::kMalformed,
        "'weight_map' is missing or empty; expected tensor names and their shards"
    );
  }
  TensorToShard result;
  for (const auto& [tensor, shard] : *weight_map) {
    if (shard.string() == nullptr) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "'weight_map' entry {} must be a file name, found {}",
              shown(tensor),
              shard.type_name()
          )
      );
    }
    check_shard_name(tensor, *shard.string());
    result.emplace(tensor, *shard.string());
  }
  return result;
}

/// Every tensor of `file` must be mapped to it; each one found is taken off `missing`.
void check_shard(
    const SafetensorsFile& file,
    const std::string& shard,
    const TensorToShard& map,
    std::set<std::string>& missing
) {
  for (const SafetensorsTensor& tensor : file.tensors) {
    const auto mapped = map.find(tensor.name);
    if (mapped == map.end() || mapped->second != shard) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "tensor {} is in shard {}, but the index {}",
              shown(tensor.name),
              shown(shard),
              mapped == map.end() ? "does not list it" : "maps it to " + shown(mapped->second)
          )
      );
    }
    missing.erase(tensor.name);
  }
}

std::vector<SafetensorsFile> read_shards(const std::string& index_path) {
  const TensorToShard map = read_weight_map(index_path);
  std::set<std::string> shards;
  std::set<std::string> missing;
  for (const auto& [tensor, shard] : map) {
    shards.insert(shard);
    missing.insert(tensor);
  }
  if (shards.size() > kMaxShards) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{} shards; at most {} are allowed", shards.size(), kMaxShards)
    );
  }
  const std::filesystem::path directory = std::filesystem::path(index_path).parent_path();
  std::vector<SafetensorsFile> files;
  for (const std::string& shard : shards) {
    files.push_back(read_safetensors((directory / shard).string()));
    check_shard(files.back(), shard, map, missing);
  }
  if (!missing.empty()) {
    const std::string& name = *missing.begin();
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "tensor {} is not in shard {}, where the index places it ({} such tensors)",
            shown(name),
            shown(map.find(name)->second),
            missing.size()
        )
    );
  }
  return files;
}

}  // namespace

std::vector<SafetensorsFile> read_safetensors_index(const std::string& index_path) {
  try {
    return read_shards(index_path);
  } catch (Error& error) {
    error.add_context(fmt::format("index {}", index_path));
    throw;
  }
}

}  // namespace octet
