// Walks through untrusted little-endian bytes. Not for files being written.
// Invariant: nothing is returned that does not lie wholly inside the bytes; what does not fit is an
// Error that says what was being read, how many bytes it needed and how many remain.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

static_assert(
    std::endian::native == std::endian::little, "files are read by memcpy of little-endian values"
);

class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  requires std::is_arithmetic_v<T> T read(std::string_view what) {
    T value{};
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  /// A string with a 64-bit length before it, as a view of the bytes.
  std::string_view read_string(std::string_view what) {
    const auto length = read<uint64_t>(what);
    const std::span<const std::byte> text = take(length, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  std::span<const std::byte> take(uint64_t count, std::string_view what) {
    require(count, what);
    const std::span<const std::byte> result = bytes_.subspan(position_, count);
    position_ += count;
    return result;
  }

  /// Throws unless `count` more bytes are there.
  void require(uint64_t count, std::string_view what) const {
    if (count > remaining()) {
      throw Error(
          ErrorKind::kMalformed,
          fmt::format(
              "the file ends inside {} (byte {}: {} bytes expected, {} remain)",
              what,
              position_,
              count,
              remaining()
          )
      );
    }
  }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;
};

}  // namespace octet
