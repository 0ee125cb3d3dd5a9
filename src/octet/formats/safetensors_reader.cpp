#include "octet/formats/safetensors_reader.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/checked_size.h"
#include "octet/formats/json_value.h"
#include "octet/formats/message_text.h"
#include "octet/formats/safetensors_types.h"

namespace octet {

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxTensors = 65536;
constexpr size_t kMaxNameBytes = 1024;
constexpr size_t kMaxDimensions = 8;
constexpr JsonLimits kHeaderLimits = {.depth = 4, .values = 1 << 20};

[[noreturn]] void malformed(std::string message) {
  throw Error(ErrorKind::kMalformed, std::move(message));
}

struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;
};

struct Entry {
  SafetensorsTensor tensor;
  ByteRange range;  // within the data section
};

std::vector<int64_t> read_integers(
    const JsonValue& entry, std::string_view member, size_t max_count
) {
  const JsonArray* array = entry.find_array(member);
  if (array == nullptr) {
    malformed(fmt::format("{} is missing", shown(member)));
  }
  if (array->size() > max_count) {
    malformed(fmt::format(
        "{} has {} entries; at most {} are allowed", shown(member), array->size(), max_count
    ));
  }
  std::vector<int64_t> values;
  for (const JsonValue& item : *array) {
    const std::optional<int64_t> value = item.integer();
    if (!value || *value < 0) {
      malformed(fmt::format("{} must hold integers from 0 to 2^63-1", shown(member)));
    }
    values.push_back(*value);
  }
  return values;
}

/// Bytes of the tensor by its dtype and shape.
int64_t tensor_bytes(const SafetensorsTensor& tensor) {
  const std::optional<int> bits = safetensors_bits(tensor.dtype);
  if (!bits) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("unknown dtype {}; expected BF16, F32, F16, U8, ...", shown(tensor.dtype))
    );
  }
  const std::optional<int64_t> elements = checked_elements(tensor.shape);
  const std::optional<int64_t> total_bits =
      elements ? checked_product(*elements, *bits) : std::nullopt;
  if (!total_bits) {
    malformed(fmt::format(
        "the size of shape {} overflows", fmt::format("[{}]", fmt::join(tensor.shape, ", "))
    ));
  }
  if (*total_bits % 8 != 0) {
    malformed(fmt::format("{} values of {} bits are not whole bytes", *elements, *bits));
  }
  return *total_bits / 8;
}

Entry read_entry(const std::string& name, const JsonValue& json, int64_t data_bytes) {
  if (json.object() == nullptr) {
    malformed(fmt::format(
        "expected an object with dtype, shape and data_offsets, found {}", json.type_name()
    ));
  }
  Entry entry;
  entry.tensor.name = name;
  const std::string* dtype = json.find_string("dtype");
  if (dtype == nullptr) {
    malformed("'dtype' is missing");
  }
  entry.tensor.dtype = *dtype;
  entry.tensor.shape = read_integers(json, "shape", kMaxDimensions);
  const std::vector<int64_t> offsets = read_integers(json, "data_offsets", 2);
  if (offsets.size() != 2) {
    malformed(fmt::format("'data_offsets' has {} entries; expected 2", offsets.size()));
  }
  entry.range = {offsets[0], offsets[1]};
  if (entry.range.end < entry.range.begin || entry.range.end > data_bytes) {
    malformed(fmt::format(
        "data_offsets [{}, {}] do not lie in the {} bytes of tensor data; the file is truncated or "
        "damaged",
        entry.range.begin,
        entry.range.end,
        data_bytes
    ));
  }
  const int64_t expected = tensor_bytes(entry.tensor);
  if (entry.range.end - entry.range.begin != expected) {
    malformed(fmt::format(
        "{} bytes at data_offsets, but dtype {} and shape [{}] need {}",
        entry.range.end - entry.range.begin,
        entry.tensor.dtype,
        fmt::join(entry.tensor.shape, ", "),
        expected
    ));
  }
  return entry;
}

std::map<std::string, std::string, std::less<>> read_metadata(const JsonValue& json) {
  std::map<std::string, std::string, std::less<>> metadata;
  if (json.object() == nullptr) {
    malformed(fmt::format("'__metadata__' must be an object of strings, found {}", json.type_name())
    );
  }
  for (const auto& [key, value] : *json.object()) {
    if (value.string() == nullptr) {
      malformed(fmt::format(
          "'__metadata__' entry {} must be a string, found {}", shown(key), value.type_name()
      ));
    }
    metadata.emplace(key, *value.string());
  }
  return metadata;
}

/// The header as JSON text, without the padding.
std::span<const std::byte> header_text(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(uint64_t)) {
    malformed(fmt::format(
        "{} bytes are too few for a safetensors file; expected at least 8", bytes.size()
    ));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > kMaxHeaderBytes) {
    malformed(fmt::format(
        "the header announces {} bytes; at most {} are allowed", length, kMaxHeaderBytes
    ));
  }
  if (length > bytes.size() - sizeof(length)) {
    malformed(fmt::format(
        "the header announces {} bytes, but only {} follow", length, bytes.size() - sizeof(length)
    ));
  }
  std::span<const std::byte> text = bytes.subspan(sizeof(length), length);
  while (!text.empty() && text.back() == std::byte{' '}) {
    text = text.first(text.size() - 1);
  }
  if (text.empty() || text.front() != std::byte{'{'} || text.back() != std::byte{'}'}) {
    malformed("the header must be one JSON object, with nothing but spaces after it");
  }
  return text;
}

/// Every byte of the data section belongs to exactly one tensor.
void check_tiling(const std::vector<Entry>& entries, int64_t data_bytes) {
  int64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.range.begin != end) {
      malformed(fmt::format(
          "tensor {}: data begins at {}, expected {}: {}",
          shown(entry.tensor.name),
          entry.range.begin,
          end,
          entry.range.begin < end ? "tensors overlap" : "there is a gap before it"
      ));
    }
    end = entry.range.end;
  }
  if (end != data_bytes) {
    malformed(fmt::format("the tensors end at byte {} of {} bytes of tensor data", end, data_bytes)
    );
  }
}

SafetensorsFile parse_file(std::span<const std::byte> bytes) {
  const std::span<const std::byte> text = header_text(bytes);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const std::span<const std::byte> data = bytes.subspan(sizeof(length) + length);
  const auto data_bytes = static_cast<int64_t>(data.size());

  const JsonValue header = parse_json(text, kHeaderLimits);
  if (header.object()->size() > kMaxTensors) {
    malformed(
        fmt::format("{} tensors; at most {} are allowed", header.object()->size(), kMaxTensors)
    );
  }
  SafetensorsFile file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : *header.object()) {
    if (name == "__metadata__") {
      file.metadata = read_metadata(value);
      continue;
    }
    if (name.empty() || name.size() > kMaxNameBytes) {
      malformed(fmt::format(
          "tensor name {} has {} bytes; expected 1 to {}", shown(name), name.size(), kMaxNameBytes
      ));
    }
    try {
      entries.push_back(read_entry(name, value, data_bytes));
    } catch (Error& error) {
      error.add_context(fmt::format("tensor {}", shown(name)));
      throw;
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.range.begin, a.range.end) < std::pair(b.range.begin, b.range.end);
  });
  check_tiling(entries, data_bytes);
  for (Entry& entry : entries) {
    entry.tensor.data = data.subspan(
        static_cast<size_t>(entry.range.begin),
        static_cast<size_t>(entry.range.end - entry.range.begin)
    );
    file.tensors.push_back(std::move(entry.tensor));
  }
  return file;
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  if (bytes.size() <= sizeof(length)) {
    return false;
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  return length <= kMaxHeaderBytes && bytes[sizeof(length)] == std::byte{'{'};
}

SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, const std::string& path) {
  try {
    SafetensorsFile file = parse_file(bytes);
    file.path = path;
    return file;
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
}

SafetensorsFile read_safetensors(const std::string& path) {
  std::shared_ptr<const MappedFile> mapping = MappedFile::open(path);
  SafetensorsFile file = parse_safetensors(mapping->bytes(), path);
  file.mapping = std::move(mapping);
  return file;
}

}  // namespace octet
