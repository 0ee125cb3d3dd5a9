#include "octet/formats/gguf_writer.h"

#include <bit>
#include <cstring>
#include <set>
#include <simdjson.h>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/checked_size.h"
#include "octet/formats/gguf_types.h"
#include "octet/formats/message_text.h"
#include "octet/formats/tensor_stream.h"

namespace octet {

namespace {

constexpr uint32_t kVersion = 3;
constexpr size_t kMaxNameBytes = 63;  // ggml's limit less the terminator
constexpr size_t kMaxKeyBytes = 65535;
constexpr size_t kMaxDimensions = 4;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 62U;
constexpr std::string_view kArchitectureKey = "general.architecture";
constexpr std::string_view kAlignmentKey = "general.alignment";

[[noreturn]] void invalid(std::string message) {
  throw Error(ErrorKind::kInvalidArgument, std::move(message));
}

template <typename T>
constexpr GgufValueType value_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return GgufValueType::kBool;
  } else if constexpr (std::is_same_v<T, float>) {
    return GgufValueType::kFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return GgufValueType::kFloat64;
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
    return GgufValueType::kString;
  } else if constexpr (std::is_same_v<T, MetadataArray>) {
    return GgufValueType::kArray;
  } else if constexpr (sizeof(T) == 1) {
    return std::is_signed_v<T> ? GgufValueType::kInt8 : GgufValueType::kUint8;
  } else if constexpr (sizeof(T) == 2) {
    return std::is_signed_v<T> ? GgufValueType::kInt16 : GgufValueType::kUint16;
  } else if constexpr (sizeof(T) == 4) {
    return std::is_signed_v<T> ? GgufValueType::kInt32 : GgufValueType::kUint32;
  } else {
    return std::is_signed_v<T> ? GgufValueType::kInt64 : GgufValueType::kUint64;
  }
}

/// Everything before the tensor data, gathered in memory (a vocabulary makes it some 20 MB).
class HeaderBuffer {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }

  void put(bool value) { put(static_cast<uint8_t>(value ? 1 : 0)); }

  void put(std::string_view text) {
    put(uint64_t{text.size()});
    bytes_.append(text);
  }

  void put(const MetadataArray& array) {
    std::visit(
        [this](const auto& values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          put(static_cast<int32_t>(value_type<T>()));
          put(uint64_t{values.size()});
          for (const auto& value : values) {
            put(static_cast<T>(value));
          }
        },
        array
    );
  }

  void put(const MetadataValue& value) {
    std::visit(
        [this](const auto& inner) {
          using T = std::decay_t<decltype(inner)>;
          put(static_cast<int32_t>(value_type<T>()));
          if constexpr (std::is_same_v<T, std::string>) {
            put(std::string_view(inner));
          } else {
            put(inner);
          }
        },
        value
    );
  }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

void check_key(std::string_view key) {
  if (key.empty() || key.size() > kMaxKeyBytes ||
      !simdjson::validate_utf8(key.data(), key.size())) {
    invalid(fmt::format("metadata key {} must be 1 to {} bytes of UTF-8", shown(key), kMaxKeyBytes)
    );
  }
}

uint64_t metadata_alignment(const Metadata& metadata) {
  const MetadataValue* value = metadata.find(kAlignmentKey);
  if (value == nullptr) {
    return kGgufDefaultAlignment;
  }
  const auto* alignment = std::get_if<uint32_t>(value);
  if (alignment == nullptr || !std::has_single_bit(*alignment)) {
    invalid("metadata key 'general.alignment' must be a u32 that is a power of two");
  }
  return *alignment;
}

int64_t tensor_bytes(const TensorSpec& spec) {
  const DTypeFacts& facts = dtype_facts(spec.dtype);
  if (facts.gguf_id < 0) {
    invalid(fmt::format("tensor {}: type {} has no GGUF form", shown(spec.name), facts.name));
  }
  if (spec.name.empty() || spec.name.size() > kMaxNameBytes) {
    invalid(fmt::format(
        "tensor name {} has {} bytes; expected 1 to {}",
        shown(spec.name),
        spec.name.size(),
        kMaxNameBytes
    ));
  }
  if (spec.shape.size() > kMaxDimensions) {
    invalid(fmt::format(
        "tensor {} has {} dimensions; at most {} are allowed",
        shown(spec.name),
        spec.shape.size(),
        kMaxDimensions
    ));
  }
  const std::optional<int64_t> elements = checked_elements(spec.shape);
  const int64_t row = spec.shape.empty() ? 1 : spec.shape.back();
  if (!elements || *elements < 1 || row % facts.block_values != 0) {
    invalid(fmt::format(
        "tensor {}: every dimension must be at least 1 and a row of {} values a multiple of {} ({} "
        "blocks)",
        shown(spec.name),
        row,
        facts.block_values,
        facts.name
    ));
  }
  const std::optional<int64_t> bytes =
      checked_product(*elements / facts.block_values, facts.block_bytes);
  if (!bytes) {
    invalid(fmt::format("tensor {}: the size overflows", shown(spec.name)));
  }
  return *bytes;
}

void put_key_value(HeaderBuffer& header, std::string_view key, const MetadataValue& value) {
  check_key(key);
  header.put(key);
  header.put(value);
}

}  // namespace

GgufWriter::GgufWriter(
    const std::string& path, const Metadata& metadata, const std::vector<TensorSpec>& tensors
) {
  const uint64_t alignment = metadata_alignment(metadata);
  HeaderBuffer header;
  for (const char letter : {'G', 'G', 'U', 'F'}) {
    header.put(letter);
  }
  header.put(kVersion);
  header.put(static_cast<int64_t>(tensors.size()));
  header.put(static_cast<int64_t>(metadata.entries().size()));
  if (const MetadataValue* architecture = metadata.find(kArchitectureKey)) {
    put_key_value(header, kArchitectureKey, *architecture);
  }
  for (const auto& [key, value] : metadata.entries()) {
    if (key != kArchitectureKey) {
      put_key_value(header, key, value);
    }
  }
  std::set<std::string_view> names;
  std::vector<TensorStream::Piece> pieces;
  uint64_t offset = 0;
  for (const TensorSpec& spec : tensors) {
    const auto bytes = static_cast<uint64_t>(tensor_bytes(spec));
    if (!names.insert(spec.name).second) {
      invalid(fmt::format("tensor {} is declared twice", shown(spec.name)));
    }
    header.put(std::string_view(spec.name));
    header.put(static_cast<uint32_t>(spec.shape.size()));
    for (auto size = spec.shape.rbegin(); size != spec.shape.rend(); ++size) {
      header.put(*size);
    }
    header.put(static_cast<int32_t>(dtype_facts(spec.dtype).gguf_id));
    header.put(offset);
    pieces.push_back({spec.name, bytes});
    offset = align_up(offset + bytes, alignment);
    if (offset > kMaxFileBytes) {
      invalid(
          fmt::format("tensor {}: the file would exceed {} bytes", shown(spec.name), kMaxFileBytes)
      );
    }
  }
  stream_ = std::make_unique<TensorStream>(path, header.bytes(), std::move(pieces), alignment);
}

GgufWriter::~GgufWriter() = default;

void GgufWriter::begin_tensor(const std::string& name) {
  stream_->begin_tensor(name);
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  stream_->write(bytes);
}

void GgufWriter::end_tensor() {
  stream_->end_tensor();
}

void GgufWriter::write_tensor(const std::string& name, std::span<const std::byte> bytes) {
  begin_tensor(name);
  write(bytes);
  end_tensor();
}

void GgufWriter::finish() {
  stream_->finish();
}

}  // namespace octet
