// Importance matrices of both forms as bytes: where fuzzing begins, and what mutations damage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/formats/gguf_writer.h"
#include "support/temporary_directory.h"

namespace octet::test {

template <typename T>
void append_value(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Two entries of two columns, each 4 calls with sums 2 and 8; five chunks of "text.txt".
inline std::string legacy_importance() {
  std::string bytes;
  append_value(bytes, int32_t{2});
  for (const std::string_view name : {"blk.0.attn_q.weight", "blk.0.ffn_up.weight"}) {
    append_value(bytes, static_cast<int32_t>(name.size()));
    bytes += name;
    append_value(bytes, int32_t{4});
    append_value(bytes, int32_t{2});
    append_value(bytes, 2.0F);
    append_value(bytes, 8.0F);
  }
  append_value(bytes, int32_t{5});
  append_value(bytes, int32_t{8});
  return bytes + "text.txt";
}

/// One entry of three columns.
inline std::string gguf_importance() {
  const TemporaryDirectory directory;
  const std::string path = directory.file("seed.gguf");
  Metadata metadata;
  metadata.set("general.type", std::string("imatrix"));
  metadata.set("imatrix.datasets", MetadataArray(std::vector<std::string_view>{"a.txt"}));
  metadata.set("imatrix.chunk_count", uint32_t{7});
  metadata.set("imatrix.chunk_size", uint32_t{256});
  const std::vector<TensorSpec> specs = {
      {"blk.0.ffn_down.weight.in_sum2", DType::kF32, {1, 3}},
      {"blk.0.ffn_down.weight.counts", DType::kF32, {1, 1}}};
  const std::vector<float> sums = {2.0F, 0.0F, 6.0F};
  const std::vector<float> counts = {2.0F};
  GgufWriter writer(path, metadata, specs);
  writer.write_tensor(specs[0].name, std::as_bytes(std::span(sums)));
  writer.write_tensor(specs[1].name, std::as_bytes(std::span(counts)));
  writer.finish();
  return read_text(path);
}

inline std::vector<std::string> importance_seeds() {
  return {legacy_importance(), gguf_importance()};
}

}  // namespace octet::test
