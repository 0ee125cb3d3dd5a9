#include "octet/formats/safetensors_writer.h"

#include <cstring>
#include <optional>
#include <set>
#include <simdjson.h>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "octet/base/error.h"
#include "octet/formats/checked_size.h"
#include "octet/formats/message_text.h"
#include "octet/formats/safetensors_types.h"
#include "octet/formats/tensor_stream.h"

namespace octet {

namespace {

constexpr uint64_t kHeaderAlignment = 8;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 62U;

[[noreturn]] void invalid(std::string message) {
  throw Error(ErrorKind::kInvalidArgument, std::move(message));
}

uint64_t spec_bytes(const SafetensorsSpec& spec) {
  const std::optional<int> bits = safetensors_bits(spec.dtype);
  if (!bits) {
    invalid(fmt::format("tensor {}: unknown dtype {}", shown(spec.name), shown(spec.dtype)));
  }
  const std::optional<int64_t> elements = checked_elements(spec.shape);
  const std::optional<int64_t> total_bits =
      elements ? checked_product(*elements, *bits) : std::nullopt;
  if (!total_bits || *total_bits % 8 != 0) {
    invalid(
        fmt::format("tensor {}: the shape must give whole bytes, fewer than 2^60", shown(spec.name))
    );
  }
  return static_cast<uint64_t>(*total_bits / 8);
}

std::string json_string(std::string_view text) {
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    invalid(fmt::format("{} is not valid UTF-8", shown(text)));
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string metadata_json(const std::map<std::string, std::string, std::less<>>& metadata) {
  std::string json = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    json +=
        fmt::format("{}{}:{}", json.back() == '{' ? "" : ",", json_string(key), json_string(value));
  }
  return json + "}";
}

/// Length prefix and JSON, padded so that the data begin at a multiple of 8.
std::string header_text(
    const std::vector<SafetensorsSpec>& tensors,
    const std::map<std::string, std::string, std::less<>>& metadata
) {
  std::string json = "{";
  if (!metadata.empty()) {
    json += metadata_json(metadata);
  }
  std::set<std::string_view> names = {"__metadata__"};
  uint64_t begin = 0;
  for (const SafetensorsSpec& spec : tensors) {
    if (spec.name.empty() || !names.insert(spec.name).second) {
      invalid(fmt::format("tensor name {} is empty, reserved or declared twice", shown(spec.name)));
    }
    const uint64_t end = begin + spec_bytes(spec);
    if (end > kMaxFileBytes) {
      invalid(
          fmt::format("tensor {}: the file would exceed {} bytes", shown(spec.name), kMaxFileBytes)
      );
    }
    json += fmt::format(
        "{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
        json.back() == '{' ? "" : ",",
        json_string(spec.name),
        spec.dtype,
        fmt::join(spec.shape, ","),
        begin,
        end
    );
    begin = end;
  }
  json += "}";
  json.resize(align_up(json.size(), kHeaderAlignment), ' ');
  const uint64_t length = json.size();
  std::string text(sizeof(length), '\0');
  std::memcpy(text.data(), &length, sizeof(length));
  return text + json;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(
    const std::string& path,
    const std::vector<SafetensorsSpec>& tensors,
    const std::map<std::string, std::string, std::less<>>& metadata
) {
  const std::string header = header_text(tensors, metadata);
  std::vector<TensorStream::Piece> pieces;
  for (const SafetensorsSpec& spec : tensors) {
    pieces.push_back({spec.name, spec_bytes(spec)});
  }
  stream_ =
      std::make_unique<TensorStream>(path, std::as_bytes(std::span(header)), std::move(pieces), 1);
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::begin_tensor(const std::string& name) {
  stream_->begin_tensor(name);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  stream_->write(bytes);
}

void SafetensorsWriter::end_tensor() {
  stream_->end_tensor();
}

void SafetensorsWriter::write_tensor(const std::string& name, std::span<const std::byte> bytes) {
  begin_tensor(name);
  write(bytes);
  end_tensor();
}

void SafetensorsWriter::finish() {
  stream_->finish();
}

}  // namespace octet
