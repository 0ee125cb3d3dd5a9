// The data section of a checkpoint being written: tensors of known sizes, in a fixed order, in
// pieces. Shared by the writers; knows no header. Invariant: what is finished holds every declared
// tensor, complete, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "octet/formats/atomic_file.h"

namespace octet {

class TensorStream {
 public:
  struct Piece {
    std::string name;
    uint64_t bytes = 0;
  };

  /// Writes `header` padded to `alignment` (a power of two), which every tensor is padded to as
  /// well.
  TensorStream(
      const std::string& path,
      std::span<const std::byte> header,
      std::vector<Piece> tensors,
      uint64_t alignment
  );

  // All throw Error(kInvalidArgument) naming the file and the tensor when called out of order or
  // with a wrong size.
  void begin_tensor(const std::string& name);
  void write(std::span<const std::byte> bytes);
  void end_tensor();
  void finish();

 private:
  [[noreturn]] void refuse(const std::string& reason) const;
  void pad();

  AtomicFile file_;
  std::vector<Piece> tensors_;
  uint64_t alignment_;
  size_t next_ = 0;  // index of the tensor that is open or comes next
  bool open_ = false;
  uint64_t remaining_bytes_ = 0;  // of the open tensor
};

}  // namespace octet
