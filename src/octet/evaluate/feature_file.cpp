#include "octet/evaluate/feature_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/check.h"
#include "octet/base/error.h"
#include "octet/evaluate/checkpoint_digest.h"
#include "octet/evaluate/digest.h"
#include "octet/formats/byte_cursor.h"
#include "octet/tensor/types/float_formats.h"

namespace octet {
namespace {

constexpr std::string_view kMagic = "OCTETFEA";
constexpr uint32_t kVersion = 2;
constexpr uint32_t kRecordMark = 0x44524352;  // "RCRD"
constexpr uint32_t kEndMark = 0x2E444E45;     // "END."
constexpr int64_t kMostTaps = 256;
constexpr int64_t kMostHidden = int64_t{1} << 20;
constexpr int64_t kMostTokens = int64_t{1} << 24;

/// Over words of 8 bytes; the last one filled up with zeros.
uint64_t checksum(std::span<const std::byte> bytes) {
  Digest digest;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
    digest.add(word);
    digest.fold();
  }
  return digest.value();
}

template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];  // NOLINT(modernize-avoid-c-arrays)
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_checksum(std::string& out) {
  put(out, checksum(std::as_bytes(std::span(out))));
}

int64_t bytes_a_value(FeatureType type) {
  return type == FeatureType::kBF16 ? 2 : 4;
}

[[noreturn]] void malformed(std::string why) {
  throw Error(ErrorKind::kMalformed, std::move(why));
}

int64_t bounded(uint64_t value, int64_t least, int64_t most, std::string_view what) {
  if (value < static_cast<uint64_t>(least) || value > static_cast<uint64_t>(most)) {
    malformed(fmt::format("{} is {}, expected {} to {}", what, value, least, most));
  }
  return static_cast<int64_t>(value);
}

void expect_checksum(ByteCursor& cursor, std::span<const std::byte> bytes, std::string_view what) {
  if (cursor.read<uint64_t>("a checksum") != checksum(bytes)) {
    malformed(fmt::format("{} is damaged: its checksum differs", what));
  }
}

}  // namespace

std::string_view feature_type_name(FeatureType type) {
  return type == FeatureType::kBF16 ? "bf16" : "f32";
}

bool FeatureHeader::has_tap(int layer) const {
  return std::find(taps.begin(), taps.end(), layer) != taps.end();
}

bool FeatureHeader::operator==(const FeatureHeader& other) const {
  return encode_feature_header(*this) == encode_feature_header(other);
}

std::string encode_feature_header(const FeatureHeader& header) {
  std::string out(kMagic);
  put(out, kVersion);
  put(out, static_cast<uint32_t>(header.type));
  put(out, static_cast<uint32_t>(header.hidden));
  put(out, static_cast<uint32_t>(header.taps.size()));
  for (const int tap : header.taps) {
    put(out, static_cast<int32_t>(tap));
  }
  put(out, header.target_digest);
  put(out, header.settings_digest);
  put(out, header.sampling.temperature);
  put(out, header.sampling.top_p);
  put(out, header.sampling.min_p);
  put(out, header.sampling.top_k);
  put_checksum(out);
  return out;
}

std::string encode_feature_record(
    const FeatureHeader& header, const FeatureRecord& record, ConstRows features
) {
  OCTET_CHECK(features.rows == std::ssize(record.tokens) - 1 && features.cols == header.width());
  std::string out;
  put(out, kRecordMark);
  put(out, static_cast<uint32_t>(record.thinking ? 1 : 0));
  put(out, static_cast<uint64_t>(record.prompt));
  put(out, static_cast<uint64_t>(record.turn));
  put(out, record.seed);
  put(out, static_cast<uint64_t>(record.max_tokens));
  put(out, static_cast<uint64_t>(record.prompt_tokens));
  put(out, static_cast<uint64_t>(record.tokens.size()));
  for (const TokenId token : record.tokens) {
    put(out, static_cast<int32_t>(token));
  }
  for (int64_t r = 0; r < features.rows; ++r) {
    for (int64_t c = 0; c < features.cols; ++c) {
      const float value = features.row(r)[c];
      if (header.type == FeatureType::kBF16) {
        put(out, f32_to_bf16(value));
      } else {
        put(out, value);
      }
    }
  }
  put_checksum(out);
  return out;
}

std::string encode_feature_end(int64_t records) {
  std::string out;
  put(out, kEndMark);
  put(out, uint32_t{0});
  put(out, static_cast<uint64_t>(records));
  put_checksum(out);
  return out;
}

FeatureFile FeatureFile::open(const std::string& path) {
  const auto file = MappedFile::open(path);
  FeatureFile features = parse(file->bytes(), path);
  features.file_ = file;
  return features;
}

FeatureFile FeatureFile::parse(std::span<const std::byte> bytes, const std::string& path) {
  FeatureFile file;
  file.path_ = path;
  file.bytes_ = bytes;
  try {
    file.read_header();
    while (file.read_record()) {
    }
    file.check_end();
  } catch (const Error& error) {
    throw Error(
        error.kind(),
        fmt::format(
            "{}: {}; record it again with `octet generate-data --features`", path, error.what()
        )
    );
  }
  return file;
}

FeatureFile FeatureFile::salvage(std::span<const std::byte> bytes, const std::string& path) {
  FeatureFile file;
  file.path_ = path;
  file.bytes_ = bytes;
  try {
    file.read_header();
  } catch (Error& error) {
    error.add_context(path);
    throw;
  }
  try {
    while (file.read_record()) {
    }
  } catch (const Error&) {
    // The run ended while it wrote this one.
  }
  return file;
}

uint64_t FeatureFile::end_of(int64_t i) const {
  return i < 0 ? header_end_ : ends_[static_cast<size_t>(i)];
}

void FeatureFile::read_header() {
  ByteCursor cursor(bytes_);
  const std::span<const std::byte> magic = cursor.take(kMagic.size(), "the first bytes");
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    malformed("is no file of recorded features");
  }
  const auto version = cursor.read<uint32_t>("the version");
  if (version != kVersion) {
    malformed(fmt::format("has version {}, expected {}", version, kVersion));
  }
  header_.type =
      static_cast<FeatureType>(bounded(cursor.read<uint32_t>("the type"), 0, 1, "the type"));
  header_.hidden =
      bounded(cursor.read<uint32_t>("the hidden size"), 1, kMostHidden, "the hidden size");
  const int64_t taps = bounded(cursor.read<uint32_t>("the taps"), 1, kMostTaps, "the taps");
  for (int64_t t = 0; t < taps; ++t) {
    const auto tap = cursor.read<int32_t>("a tap");
    if (tap < 0) {
      malformed(fmt::format("has the tap {}, expected a layer from 0", tap));
    }
    header_.taps.push_back(tap);
  }
  header_.target_digest = cursor.read<uint64_t>("the target's digest");
  header_.settings_digest = cursor.read<uint64_t>("the settings' digest");
  header_.sampling.temperature = cursor.read<float>("the temperature");
  header_.sampling.top_p = cursor.read<float>("top-p");
  header_.sampling.min_p = cursor.read<float>("min-p");
  header_.sampling.top_k = cursor.read<int64_t>("top-k");
  expect_checksum(cursor, bytes_.first(cursor.position()), "the header");
  header_.sampling.validate(kMostTokens);
  position_ = cursor.position();
  header_end_ = position_;
}

/// False at the end mark, or where the bytes are over; throws for a record that is cut or damaged.
bool FeatureFile::read_record() {
  const std::span<const std::byte> rest = bytes_.subspan(position_);
  ByteCursor cursor(rest);
  const auto mark = cursor.read<uint32_t>("a record's mark");
  if (mark == kEndMark) {
    return false;
  }
  if (mark != kRecordMark) {
    malformed(fmt::format("holds no record at byte {}, where one was expected", position_));
  }
  FeatureRecord record;
  record.thinking = cursor.read<uint32_t>("a record") != 0;
  record.prompt = bounded(cursor.read<uint64_t>("a record"), 0, INT32_MAX, "a prompt's index");
  record.turn = bounded(cursor.read<uint64_t>("a record"), 0, INT32_MAX, "a turn's index");
  record.seed = cursor.read<uint64_t>("a record");
  record.max_tokens =
      bounded(cursor.read<uint64_t>("a record"), 0, kMostTokens, "a reply's most tokens");
  const auto prompt_tokens = cursor.read<uint64_t>("a record");
  const int64_t count =
      bounded(cursor.read<uint64_t>("a record"), 2, kMostTokens, "a text's tokens");
  record.prompt_tokens = bounded(prompt_tokens, 1, count - 1, "a prompt's tokens");
  // Bounded above, so that none of these products overflows.
  const std::span<const std::byte> ids =
      cursor.take(static_cast<uint64_t>(count) * sizeof(int32_t), "the tokens of a record");
  record.tokens.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < record.tokens.size(); ++i) {
    int32_t id = 0;
    std::memcpy(&id, ids.data() + i * sizeof(id), sizeof(id));
    if (id < 0) {
      malformed(fmt::format("holds the token {}, expected ids from 0", id));
    }
    record.tokens[i] = static_cast<TokenId>(id);
  }
  const uint64_t values = position_ + cursor.position();
  cursor.take(
      static_cast<uint64_t>(count - 1) * static_cast<uint64_t>(header_.width()) *
          static_cast<uint64_t>(bytes_a_value(header_.type)),
      "the features of a record"
  );
  expect_checksum(cursor, rest.first(cursor.position()), fmt::format("record {}", records_.size()));
  records_.push_back(std::move(record));
  value_places_.push_back(values);
  position_ += cursor.position();
  ends_.push_back(position_);
  return true;
}

void FeatureFile::check_end() const {
  const std::string expected = encode_feature_end(std::ssize(records_));
  const std::span<const std::byte> rest = bytes_.subspan(position_);
  if (rest.size() != expected.size() ||
      std::memcmp(rest.data(), expected.data(), expected.size()) != 0) {
    malformed("does not end as a whole file does");
  }
}

uint64_t FeatureFile::digest() const {
  Digest digest;
  const auto add_checksum = [&](uint64_t end) {
    uint64_t sum = 0;
    std::memcpy(&sum, bytes_.data() + end - sizeof(sum), sizeof(sum));
    digest.add(sum);
    digest.fold();
  };
  add_checksum(header_end_);
  for (const uint64_t end : ends_) {
    add_checksum(end);
  }
  return digest.value();
}

void FeatureFile::require_taps(std::span<const int> taps) const {
  for (const int tap : taps) {
    if (!header_.has_tap(tap)) {
      throw Error(
          ErrorKind::kMismatch,
          fmt::format(
              "{}: has no features of layer {}, which the drafter reads, but of {}; record them "
              "with `octet generate-data --taps`",
              path_,
              tap,
              fmt::join(header_.taps, ", ")
          )
      );
    }
  }
}

std::vector<float> FeatureFile::features(int64_t i, std::span<const int> taps) const {
  require_taps(taps);
  const FeatureRecord& record = records_[static_cast<size_t>(i)];
  std::vector<int64_t> columns;
  for (const int tap : taps) {
    const auto place = std::find(header_.taps.begin(), header_.taps.end(), tap);
    columns.push_back((place - header_.taps.begin()) * header_.hidden);
  }
  const int64_t rows = std::ssize(record.tokens) - 1;
  const auto value_bytes = static_cast<size_t>(bytes_a_value(header_.type));
  const std::byte* from = bytes_.data() + value_places_[static_cast<size_t>(i)];
  std::vector<float> out;
  out.reserve(static_cast<size_t>(rows * std::ssize(taps) * header_.hidden));
  for (int64_t r = 0; r < rows; ++r) {
    for (const int64_t column : columns) {
      for (int64_t c = 0; c < header_.hidden; ++c) {
        const std::byte* place =
            from + static_cast<size_t>(r * header_.width() + column + c) * value_bytes;
        if (header_.type == FeatureType::kBF16) {
          uint16_t bits = 0;
          std::memcpy(&bits, place, sizeof(bits));
          out.push_back(bf16_to_f32(bits));
        } else {
          float value = 0.0F;
          std::memcpy(&value, place, sizeof(value));
          out.push_back(value);
        }
      }
    }
  }
  return out;
}

void require_target(const FeatureFile& file, const Checkpoint& target) {
  const uint64_t found = checkpoint_digest(target);
  if (found != file.header().target_digest) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{}: was recorded with another target (digest {:016x}) than {} ({:016x}); give that "
            "target, or record it again with this one",
            file.path(),
            file.header().target_digest,
            target.path,
            found
        )
    );
  }
}

}  // namespace octet
