// Builds GGUF and safetensors bytes by hand, field by field, so that a test can put any lie into
// any field. Not the writers of formats/: those refuse to lie.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace octet::test {

class Bytes {
 public:
  template <typename T>
  Bytes& put(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    text_.append(raw, sizeof(T));
    return *this;
  }
  Bytes& raw(std::string_view text) {
    text_ += text;
    return *this;
  }
  Bytes& string(std::string_view text) { return put(uint64_t{text.size()}).raw(text); }
  Bytes& zeros(size_t count) {
    text_.append(count, '\0');
    return *this;
  }
  Bytes& pad_to(size_t alignment) {
    return zeros((alignment - text_.size() % alignment) % alignment);
  }

  // Pieces of a GGUF file.
  Bytes& gguf_header(int64_t tensors, int64_t keys, uint32_t version = 3) {
    return raw("GGUF").put(version).put(tensors).put(keys);
  }
  Bytes& key(std::string_view name, int32_t type) { return string(name).put(type); }
  Bytes& tensor(
      std::string_view name, const std::vector<int64_t>& sizes, int32_t type, uint64_t offset
  ) {
    string(name).put(static_cast<uint32_t>(sizes.size()));
    for (const int64_t size : sizes) {
      put(size);
    }
    return put(type).put(offset);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A whole safetensors file from header text and data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return Bytes().put(uint64_t{header.size()}).raw(header).raw(data).text();
}

}  // namespace octet::test
