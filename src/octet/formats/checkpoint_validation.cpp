#include "octet/formats/checkpoint_validation.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/message_text.h"
#include "octet/formats/tensor_names.h"
#include "octet/tensor/check_values.h"

namespace octet {

namespace {

constexpr size_t kShownNames = 5;

/// Dimension `from_end` places before the last; 1 where the shape has none.
int64_t dimension_from_end(const std::vector<int64_t>& shape, size_t from_end) {
  return from_end < shape.size() ? shape[shape.size() - 1 - from_end] : 1;
}

/// Converters drop leading dimensions of 1 or keep them; the values and their order are the same.
bool matches(const std::vector<int64_t>& expected, const std::vector<int64_t>& found) {
  for (size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    const int64_t wanted = dimension_from_end(expected, i);
    if (wanted != kAnyDimension && wanted != dimension_from_end(found, i)) {
      return false;
    }
  }
  return true;
}

/// The expected shape, with a free dimension taken from the tensor.
std::vector<int64_t> normalised_shape(
    const std::vector<int64_t>& expected, const LogicalTensor& tensor
) {
  std::vector<int64_t> shape = expected;
  std::replace(shape.begin(), shape.end(), kAnyDimension, tensor.rows());
  return shape;
}

void report_unknown(const std::vector<std::string>& names, const std::string& architecture) {
  if (!names.empty()) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format(
            "tensors that a {} model does not have: {}",
            architecture,
            shown_list(names, kShownNames)
        )
    );
  }
}

void report_missing(const std::vector<ExpectedTensor>& expected, const Checkpoint& checkpoint) {
  std::vector<std::string> missing;
  for (const ExpectedTensor& tensor : expected) {
    if (tensor.presence == TensorPresence::kRequired && checkpoint.find(tensor.name) == nullptr) {
      missing.push_back(tensor.name);
    }
  }
  if (!missing.empty()) {
    throw Error(
        ErrorKind::kNotFound,
        fmt::format(
            "tensors that the model needs are missing: {}", shown_list(missing, kShownNames)
        )
    );
  }
}

}  // namespace

void add_validated_tensors(
    Checkpoint& checkpoint, std::vector<LogicalTensor> tensors, UnusedTensors unused
) {
  const std::vector<ExpectedTensor> expected = expected_tensors(checkpoint.metadata);
  std::map<std::string_view, const ExpectedTensor*> by_name;
  for (const ExpectedTensor& tensor : expected) {
    by_name.emplace(tensor.name, &tensor);
  }
  std::vector<std::string> unknown;
  for (LogicalTensor& tensor : tensors) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end()) {
      unknown.push_back(tensor.name);
      continue;
    }
    const ExpectedTensor& wanted = *found->second;
    if (!matches(wanted.shape, tensor.shape)) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "tensor {} has shape {}; the metadata call for {}",
              shown(tensor.name),
              shape_text(tensor.shape),
              shape_text(wanted.shape)
          )
      );
    }
    if (wanted.presence != TensorPresence::kUnused || unused == UnusedTensors::kKeep) {
      tensor.shape = normalised_shape(wanted.shape, tensor);
      checkpoint.add(std::move(tensor));
    }
  }
  report_unknown(unknown, checkpoint.architecture());
  report_missing(expected, checkpoint);
}

void check_tensor_values(const Checkpoint& checkpoint) {
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    try {
      check_values(tensor);
    } catch (Error& error) {
      error.add_context(checkpoint.path);
      throw;
    }
  }
}

}  // namespace octet
