#include "octet/train/state_file.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/formats/safetensors_writer.h"

namespace octet::train {
namespace {

constexpr const char* kRunKey = "octet.run";
constexpr const char* kNotesKey = "octet.notes";
constexpr const char* kStepKey = "octet.next_step";

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return std::as_bytes(std::span(tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())));
}

}  // namespace

void write_state_file(
    const std::string& path, const std::vector<NamedTensor>& tensors, const StateFacts& facts
) {
  std::vector<SafetensorsSpec> specs;
  for (const NamedTensor& tensor : tensors) {
    OCTET_CHECK(tensor.value.scalar_type() == at::kFloat);
    specs.push_back({tensor.name, "F32", tensor.value.sizes().vec()});
  }
  SafetensorsWriter writer(
      path,
      specs,
      {{kRunKey, facts.run}, {kNotesKey, facts.notes}, {kStepKey, std::to_string(facts.next_step)}}
  );
  for (const NamedTensor& tensor : tensors) {
    writer.write_tensor(tensor.name, bytes_of(tensor.value.contiguous()));
  }
  writer.finish();
}

void StateFile::copy_to(std::string_view name, Tensor to) const {
  const auto found =
      std::find_if(file.tensors.begin(), file.tensors.end(), [&](const SafetensorsTensor& tensor) {
        return tensor.name == name;
      });
  if (found == file.tensors.end() || found->shape != to.sizes().vec() || found->dtype != "F32") {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: has no float32 '{}' of the shape that this model needs; it is the state of "
            "another model",
            file.path,
            name
        )
    );
  }
  OCTET_CHECK(to.is_contiguous());
  std::memcpy(to.data_ptr<float>(), found->data.data(), found->data.size());
}

StateFile read_state_file(const std::string& path) {
  StateFile state;
  state.file = read_safetensors(path);
  const auto run = state.file.metadata.find(kRunKey);
  const auto step = state.file.metadata.find(kStepKey);
  const bool complete = run != state.file.metadata.end() && step != state.file.metadata.end();
  const char* end = complete ? step->second.data() + step->second.size() : nullptr;
  if (!complete || std::from_chars(step->second.data(), end, state.facts.next_step).ptr != end ||
      state.facts.next_step < 0) {
    throw Error(
        ErrorKind::kMalformed,
        fmt::format("{}: is not the state of a training run; expected what --state wrote", path)
    );
  }
  state.facts.run = run->second;
  if (const auto notes = state.file.metadata.find(kNotesKey); notes != state.file.metadata.end()) {
    state.facts.notes = notes->second;
  }
  return state;
}

}  // namespace octet::train
