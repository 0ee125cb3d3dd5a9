#include "octet/formats/gguf_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <simdjson.h>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/byte_cursor.h"
#include "octet/formats/checked_size.h"
#include "octet/formats/gguf_types.h"
#include "octet/formats/message_text.h"

namespace octet {

namespace {

// Own limits, far above any real file: they bound memory before anything is believed.
constexpr int64_t kMaxKeys = 65536;
constexpr int64_t kMaxTensors = 65536;
constexpr uint64_t kMaxLength = uint64_t{1} << 30U;  // bytes of a string, elements of an array
constexpr uint64_t kMaxNameBytes = 1024;
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMinKeyRecordBytes = 14;     // empty key, type, one byte
constexpr uint64_t kMinTensorRecordBytes = 24;  // empty name, no dimension, type, offset

[[noreturn]] void malformed(std::string message) {
  throw Error(ErrorKind::kMalformed, std::move(message));
}

class GgufParser {
 public:
  explicit GgufParser(std::span<const std::byte> bytes) : bytes_(bytes), cursor_(bytes) {}

  GgufFile parse();

 private:
  void read_version();
  int64_t read_count(std::string_view what, int64_t limit, uint64_t min_record_bytes);
  void read_key_values(int64_t count);
  MetadataValue read_value(int32_t type);
  MetadataArray read_array();
  template <typename T>
  MetadataArray read_numbers(uint64_t count);
  MetadataArray read_strings(uint64_t count);
  MetadataArray read_booleans(uint64_t count);
  void read_alignment();
  void read_tensor_infos(int64_t count);
  GgufTensor read_tensor_info();
  void locate_tensors();
  void check_overlaps() const;

  std::span<const std::byte> bytes_;
  ByteCursor cursor_;
  GgufFile file_;
  std::vector<uint64_t> tensor_bytes_;
};

GgufFile GgufParser::parse() {
  read_version();
  const int64_t tensors = read_count("tensors", kMaxTensors, kMinTensorRecordBytes);
  const int64_t keys = read_count("metadata keys", kMaxKeys, kMinKeyRecordBytes);
  read_key_values(keys);
  read_alignment();
  read_tensor_infos(tensors);
  locate_tensors();
  check_overlaps();
  return std::move(file_);
}

void GgufParser::read_version() {
  const std::span<const std::byte> magic = cursor_.take(4, "the magic number");
  if (std::memcmp(magic.data(), "FUGG", 4) == 0) {
    throw Error(ErrorKind::kUnsupported, "big-endian GGUF file; convert it to little-endian first");
  }
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    malformed("not a GGUF file: the first four bytes must be \"GGUF\"");
  }
  file_.version = cursor_.read<uint32_t>("the version");
  if ((file_.version & 0xFFFFU) == 0 && file_.version != 0) {
    throw Error(ErrorKind::kUnsupported, "big-endian GGUF file; convert it to little-endian first");
  }
  if (file_.version != 2 && file_.version != 3) {
    throw Error(
        ErrorKind::kUnsupported,
        fmt::format("GGUF version {} is not supported; expected 2 or 3", file_.version)
    );
  }
}

int64_t GgufParser::read_count(std::string_view what, int64_t limit, uint64_t min_record_bytes) {
  const auto count = cursor_.read<int64_t>(fmt::format("the number of {}", what));
  if (count < 0 || count > limit) {
    malformed(fmt::format("the header announces {} {}; expected 0 to {}", count, what, limit));
  }
  if (static_cast<uint64_t>(count) * min_record_bytes > cursor_.remaining()) {
    malformed(fmt::format(
        "the header announces {} {}, but only {} bytes follow", count, what, cursor_.remaining()
    ));
  }
  return count;
}

void GgufParser::read_key_values(int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view key = cursor_.read_string(fmt::format("metadata key {}", i));
    if (key.empty() || key.size() > kMaxNameBytes) {
      malformed(fmt::format(
          "metadata key {} has {} bytes; expected 1 to {}", i, key.size(), kMaxNameBytes
      ));
    }
    if (!simdjson::validate_utf8(key.data(), key.size())) {
      malformed(fmt::format("metadata key {} is not valid UTF-8: {}", i, shown(key)));
    }
    if (file_.metadata.contains(key)) {
      malformed(fmt::format("metadata key {} is there twice", shown(key)));
    }
    try {
      const auto type = cursor_.read<int32_t>("the value type");
      file_.metadata.set(std::string(key), read_value(type));
    } catch (Error& error) {
      error.add_context(fmt::format("metadata key {}", shown(key)));
      throw;
    }
  }
}

MetadataValue GgufParser::read_value(int32_t type) {
  constexpr std::string_view kWhat = "the value";
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::kUint8:
      return cursor_.read<uint8_t>(kWhat);
    case GgufValueType::kInt8:
      return cursor_.read<int8_t>(kWhat);
    case GgufValueType::kUint16:
      return cursor_.read<uint16_t>(kWhat);
    case GgufValueType::kInt16:
      return cursor_.read<int16_t>(kWhat);
    case GgufValueType::kUint32:
      return cursor_.read<uint32_t>(kWhat);
    case GgufValueType::kInt32:
      return cursor_.read<int32_t>(kWhat);
    case GgufValueType::kFloat32:
      return cursor_.read<float>(kWhat);
    case GgufValueType::kBool:
      return cursor_.read<uint8_t>(kWhat) != 0;
    case GgufValueType::kUint64:
      return cursor_.read<uint64_t>(kWhat);
    case GgufValueType::kInt64:
      return cursor_.read<int64_t>(kWhat);
    case GgufValueType::kFloat64:
      return cursor_.read<double>(kWhat);
    case GgufValueType::kArray:
      return read_array();
    case GgufValueType::kString: {
      const std::string_view text = cursor_.read_string(kWhat);
      if (text.size() > kMaxLength) {
        malformed(
            fmt::format("the string has {} bytes; at most {} are allowed", text.size(), kMaxLength)
        );
      }
      return std::string(text);
    }
  }
  malformed(fmt::format("unknown value type {}; expected 0 to 12", type));
}

MetadataArray GgufParser::read_array() {
  const auto type = cursor_.read<int32_t>("the element type");
  const auto count = cursor_.read<uint64_t>("the array length");
  if (count > kMaxLength) {
    malformed(fmt::format("the array has {} elements; at most {} are allowed", count, kMaxLength));
  }
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::kUint8:
      return read_numbers<uint8_t>(count);
    case GgufValueType::kInt8:
      return read_numbers<int8_t>(count);
    case GgufValueType::kUint16:
      return read_numbers<uint16_t>(count);
    case GgufValueType::kInt16:
      return read_numbers<int16_t>(count);
    case GgufValueType::kUint32:
      return read_numbers<uint32_t>(count);
    case GgufValueType::kInt32:
      return read_numbers<int32_t>(count);
    case GgufValueType::kFloat32:
      return read_numbers<float>(count);
    case GgufValueType::kUint64:
      return read_numbers<uint64_t>(count);
    case GgufValueType::kInt64:
      return read_numbers<int64_t>(count);
    case GgufValueType::kFloat64:
      return read_numbers<double>(count);
    case GgufValueType::kBool:
      return read_booleans(count);
    case GgufValueType::kString:
      return read_strings(count);
    case GgufValueType::kArray:
      malformed("an array of arrays is not allowed");
  }
  malformed(fmt::format("unknown array element type {}; expected 0 to 12 without 9", type));
}

template <typename T>
MetadataArray GgufParser::read_numbers(uint64_t count) {
  const std::span<const std::byte> data = cursor_.take(count * sizeof(T), "the array");
  std::vector<T> values(count);
  if (!data.empty()) {
    std::memcpy(values.data(), data.data(), data.size());
  }
  return values;
}

MetadataArray GgufParser::read_booleans(uint64_t count) {
  const std::span<const std::byte> data = cursor_.take(count, "the array");
  std::vector<bool> values(count);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = data[i] != std::byte{0};
  }
  return values;
}

MetadataArray GgufParser::read_strings(uint64_t count) {
  cursor_.require(count * sizeof(uint64_t), "the array of strings");
  std::vector<std::string_view> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    values.push_back(cursor_.read_string("a string of the array"));
  }
  return values;
}

void GgufParser::read_alignment() {
  const MetadataValue* value = file_.metadata.find("general.alignment");
  if (value == nullptr) {
    return;
  }
  const auto* alignment = std::get_if<uint32_t>(value);
  if (alignment == nullptr) {
    malformed(fmt::format(
        "metadata key 'general.alignment' must be a u32, found {}", metadata_type_name(*value)
    ));
  }
  if (!std::has_single_bit(*alignment)) {
    malformed(
        fmt::format("metadata key 'general.alignment' is {}; expected a power of two", *alignment)
    );
  }
  file_.alignment = *alignment;
}

void GgufParser::read_tensor_infos(int64_t count) {
  file_.tensors.reserve(static_cast<size_t>(count));
  tensor_bytes_.reserve(static_cast<size_t>(count));
  std::set<std::string, std::less<>> names;
  for (int64_t i = 0; i < count; ++i) {
    const std::string_view name = cursor_.read_string(fmt::format("the name of tensor {}", i));
    if (name.empty() || name.size() > kMaxNameBytes) {
      malformed(fmt::format(
          "the name of tensor {} has {} bytes; expected 1 to {}", i, name.size(), kMaxNameBytes
      ));
    }
    if (!simdjson::validate_utf8(name.data(), name.size())) {
      malformed(fmt::format("the name of tensor {} is not valid UTF-8: {}", i, shown(name)));
    }
    if (!names.emplace(name).second) {
      malformed(fmt::format("tensor {} is there twice", shown(name)));
    }
    try {
      GgufTensor tensor = read_tensor_info();
      tensor.name = name;
      file_.tensors.push_back(std::move(tensor));
    } catch (Error& error) {
      error.add_context(fmt::format("tensor {}", shown(name)));
      throw;
    }
  }
}

GgufTensor GgufParser::read_tensor_info() {
  GgufTensor tensor;
  const auto dimensions = cursor_.read<uint32_t>("the number of dimensions");
  if (dimensions > kMaxDimensions) {
    malformed(fmt::format("{} dimensions; at most {} are allowed", dimensions, kMaxDimensions));
  }
  for (uint32_t d = 0; d < dimensions; ++d) {
    const auto size = cursor_.read<int64_t>("a dimension");
    if (size < 1) {
      malformed(fmt::format("dimension {} is {}; expected at least 1", d, size));
    }
    tensor.shape.push_back(size);
  }
  const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.front();
  std::reverse(tensor.shape.begin(), tensor.shape.end());

  tensor.type_id = cursor_.read<int32_t>("the tensor type");
  const std::optional<GgufType> type = gguf_type(tensor.type_id);
  if (!type) {
    malformed(
        fmt::format("unknown or removed tensor type {}; expected a ggml type id", tensor.type_id)
    );
  }
  if (row % type->block_values != 0) {
    malformed(fmt::format(
        "a row of {} values is not a whole number of {} blocks of {}",
        row,
        type->name,
        type->block_values
    ));
  }
  const std::optional<int64_t> elements = checked_elements(tensor.shape);
  const std::optional<int64_t> size =
      elements ? checked_product(*elements / type->block_values, type->block_bytes) : std::nullopt;
  if (!size) {
    malformed("the product of the dimensions overflows; expected less than 2^63 bytes");
  }
  tensor_bytes_.push_back(static_cast<uint64_t>(*size));

  tensor.offset = cursor_.read<uint64_t>("the tensor offset");
  if (tensor.offset % file_.alignment != 0) {
    malformed(fmt::format(
        "offset {} is not a multiple of the alignment {}", tensor.offset, file_.alignment
    ));
  }
  return tensor;
}

void GgufParser::locate_tensors() {
  file_.data_start = align_up(cursor_.position(), file_.alignment);
  const uint64_t available =
      file_.data_start <= bytes_.size() ? bytes_.size() - file_.data_start : 0;
  for (size_t i = 0; i < file_.tensors.size(); ++i) {
    GgufTensor& tensor = file_.tensors[i];
    const std::optional<uint64_t> end = checked_sum(tensor.offset, tensor_bytes_[i]);
    if (!end || *end > available) {
      malformed(fmt::format(
          "tensor {}: {} bytes at offset {} do not fit into the {} bytes of tensor data; the file "
          "is truncated "
          "or damaged",
          shown(tensor.name),
          tensor_bytes_[i],
          tensor.offset,
          available
      ));
    }
    tensor.data = bytes_.subspan(file_.data_start + tensor.offset, tensor_bytes_[i]);
  }
}

void GgufParser::check_overlaps() const {
  std::vector<const GgufTensor*> order;
  order.reserve(file_.tensors.size());
  for (const GgufTensor& tensor : file_.tensors) {
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->offset < b->offset;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->data.size() > order[i]->offset) {
      malformed(fmt::format(
          "tensors {} and {} overlap at offset {}",
          shown(order[i - 1]->name),
          shown(order[i]->name),
          order[i]->offset
      ));
    }
  }
}

}  // namespace

bool looks_like_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 &&
         (std::memcmp(bytes.data(), "GGUF", 4) == 0 || std::memcmp(bytes.data(), "FUGG", 4) == 0);
}

GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& path) {
  try {
    GgufFile file = GgufParser(bytes).parse();
    file.path = path;
    return file;
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
}

GgufFile read_gguf(const std::string& path) {
  std::shared_ptr<const MappedFile> mapping = MappedFile::open(path);
  GgufFile file = parse_gguf(mapping->bytes(), path);
  file.mapping = std::move(mapping);
  return file;
}

}  // namespace octet
