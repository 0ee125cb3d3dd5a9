#include "octet/formats/tensor_stream.h"

#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/checked_size.h"
#include "octet/formats/message_text.h"

namespace octet {

TensorStream::TensorStream(
    const std::string& path,
    std::span<const std::byte> header,
    std::vector<Piece> tensors,
    uint64_t alignment
)
    : file_(path), tensors_(std::move(tensors)), alignment_(alignment) {
  file_.write(header);
  pad();
}

void TensorStream::begin_tensor(const std::string& name) {
  if (open_) {
    refuse(fmt::format(
        "tensor {} begins before {} has ended", shown(name), shown(tensors_[next_].name)
    ));
  }
  if (next_ == tensors_.size() || tensors_[next_].name != name) {
    refuse(fmt::format(
        "tensor {} is not the one to write now; expected {}",
        shown(name),
        next_ == tensors_.size() ? "no further tensor" : shown(tensors_[next_].name)
    ));
  }
  remaining_bytes_ = tensors_[next_].bytes;
  open_ = true;
}

void TensorStream::write(std::span<const std::byte> bytes) {
  if (!open_) {
    refuse("bytes written outside a tensor");
  }
  if (bytes.size() > remaining_bytes_) {
    refuse(fmt::format(
        "{} bytes written to tensor {} where {} remain",
        bytes.size(),
        shown(tensors_[next_].name),
        remaining_bytes_
    ));
  }
  file_.write(bytes);
  remaining_bytes_ -= bytes.size();
}

void TensorStream::end_tensor() {
  if (!open_ || remaining_bytes_ != 0) {
    refuse(
        open_
            ? fmt::format("tensor {} lacks {} bytes", shown(tensors_[next_].name), remaining_bytes_)
            : "a tensor ends that was not begun"
    );
  }
  pad();
  open_ = false;
  ++next_;
}

void TensorStream::finish() {
  if (next_ != tensors_.size()) {
    refuse(fmt::format("tensor {} was not written", shown(tensors_[next_].name)));
  }
  file_.finish();
}

void TensorStream::refuse(const std::string& reason) const {
  throw Error(ErrorKind::kInvalidArgument, fmt::format("{}: {}", file_.path(), reason));
}

void TensorStream::pad() {
  file_.write_zeros(align_up(file_.size(), alignment_) - file_.size());
}

}  // namespace octet
