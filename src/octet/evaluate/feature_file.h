// Texts that a target wrote, with the features that it had at every token: what a drafter is
// trained and judged on without running the target again. docs/evaluation.md has the layout. Not
// for the texts alone (generate_data.h writes those as JSON). Invariants: nothing is read that the
// file does not wholly hold; a record that differs from what was written is an Error, never data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "octet/base/mapped_file.h"
#include "octet/base/token.h"
#include "octet/sampling/sampling_params.h"
#include "octet/tensor/checkpoint.h"
#include "octet/tensor/rows.h"

namespace octet {

enum class FeatureType : uint8_t { kBF16, kF32 };
std::string_view feature_type_name(FeatureType type);

/// What holds for all records of a file.
struct FeatureHeader {
  FeatureType type = FeatureType::kBF16;
  int64_t hidden = 0;            // of the target
  std::vector<int> taps;         // zero-based target layers, in the order of the columns
  uint64_t target_digest = 0;    // checkpoint_digest of the target
  uint64_t settings_digest = 0;  // of how the texts were made
  SamplingParams sampling;       // temperature, top_k, top_p and min_p; the rest is not recorded

  int64_t width() const { return static_cast<int64_t>(taps.size()) * hidden; }
  bool has_tap(int layer) const;
  bool operator==(const FeatureHeader& other) const;
};

/// One reply and what stood before it.
struct FeatureRecord {
  int64_t prompt = 0;  // index in the list of prompts
  int64_t turn = 0;
  bool thinking = false;  // the template asked for it
  uint64_t seed = 0;
  int64_t max_tokens = 0;  // that the reply might have had
  int64_t prompt_tokens = 0;
  std::vector<TokenId> tokens;  // prompt and reply
};

std::string encode_feature_header(const FeatureHeader& header);
/// `features` [tokens - 1, width], of all but the last token.
std::string encode_feature_record(
    const FeatureHeader& header, const FeatureRecord& record, ConstRows features
);
/// What closes a file of so many records.
std::string encode_feature_end(int64_t records);

/// What a file holds, by place.
class FeatureFile {
 public:
  /// Throws Error naming the path: kMalformed for what is no such file, is damaged or ends early.
  static FeatureFile open(const std::string& path);
  /// The same over bytes that the caller keeps.
  static FeatureFile parse(std::span<const std::byte> bytes, const std::string& path);
  /// Of a file in the making: the records that are whole and unharmed, and where they end.
  static FeatureFile salvage(std::span<const std::byte> bytes, const std::string& path);

  const std::string& path() const { return path_; }
  const FeatureHeader& header() const { return header_; }
  const std::vector<FeatureRecord>& records() const { return records_; }
  /// Bytes up to the end of record i (-1: of the header).
  uint64_t end_of(int64_t i) const;
  /// A number that tells files apart, by all that they hold: of their checksums.
  uint64_t digest() const;
  /// Throws Error(kMismatch) naming the first of these taps that was not recorded.
  void require_taps(std::span<const int> taps) const;
  /// The columns of these taps, in this order, of record i: [tokens - 1, taps * hidden]. Throws
  /// Error(kMismatch) for a tap that was not recorded.
  std::vector<float> features(int64_t i, std::span<const int> taps) const;

 private:
  FeatureFile() = default;
  void read_header();
  bool read_record();
  void check_end() const;

  std::string path_;
  std::shared_ptr<const MappedFile> file_;  // null: bytes of the caller
  std::span<const std::byte> bytes_;
  uint64_t position_ = 0;  // behind what has been read
  FeatureHeader header_;
  uint64_t header_end_ = 0;
  std::vector<FeatureRecord> records_;
  std::vector<uint64_t> value_places_;  // where the values of each record begin
  std::vector<uint64_t> ends_;
};

/// Throws Error(kMismatch) naming both unless the file was recorded with this target.
void require_target(const FeatureFile& file, const Checkpoint& target);

}  // namespace octet
