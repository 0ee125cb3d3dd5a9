#include "octet/tensor/checkpoint.h"

#include <functional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet {

namespace {

bool contains(std::span<const std::byte> outer, std::span<const std::byte> inner) {
  // std::less gives the total order that < does not promise for pointers into different mappings.
  const std::less<> before;
  const std::byte* inner_end = inner.data() + inner.size();
  return !before(inner.data(), outer.data()) && !before(outer.data() + outer.size(), inner_end);
}

}  // namespace

void Checkpoint::add(LogicalTensor tensor) {
  const auto [position, inserted] = index_.try_emplace(tensor.name, tensors_.size());
  if (!inserted) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{}: tensor '{}' appears twice; names must be unique", path, tensor.name)
    );
  }
  tensors_.push_back(std::move(tensor));
}

const LogicalTensor* Checkpoint::find(std::string_view name) const {
  const auto position = index_.find(name);
  return position == index_.end() ? nullptr : &tensors_[position->second];
}

const LogicalTensor& Checkpoint::at(std::string_view name) const {
  const LogicalTensor* tensor = find(name);
  if (tensor == nullptr) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format("{}: tensor '{}' is missing; the model needs it", path, name)
    );
  }
  return *tensor;
}

void Checkpoint::drop_pages(const LogicalTensor& tensor) const {
  for (const std::span<const std::byte> range : {tensor.data, tensor.block_scales}) {
    for (const auto& file : files) {
      if (!range.empty() && contains(file->bytes(), range)) {
        file->drop(range);
      }
    }
  }
}

}  // namespace octet
