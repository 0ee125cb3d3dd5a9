// The files of octet generate-data as they grow: JSON lines, and on wish features beside them.
// Finds what an earlier run left of both and says what is still missing; what a line holds and how
// features come to be is generate_data.h. Invariants: a file that these prompts and settings did
// not begin is refused and stays as it is; replies that stand in the lines are kept, their features
// are made again where they are missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "octet/evaluate/feature_file.h"
#include "octet/formats/journal_file.h"

namespace octet {

/// What a run is to write, and thereby what it may find.
struct DataPlan {
  std::string lines_path;
  std::string features_path;         // empty: no features
  bool replace = false;              // files under these names
  FeatureHeader header;              // its settings_digest stands in every line
  std::span<const int64_t> prompts;  // in the order of the lines
  std::string beginning;  // the bytes that the lines begin with, as far as they are known
  int64_t vocabulary = 0;
  int64_t context_length = 0;
  int64_t max_tokens = 0;  // of a reply

  /// Tokens that a reply to so many may have.
  int64_t most_tokens(int64_t prompt_tokens) const;
};

/// How lines and headers spell a digest.
std::string spell_digest(uint64_t digest);

/// True where a run may have ended after naming its features and before naming its lines: then both
/// are as good as done, and what has the features' name is not in the way.
bool named_by_half(const std::string& lines_path, const std::string& features_path);

class DataOutputs {
 public:
  /// Throws Error, as do all members: kMismatch where other prompts or settings began the files,
  /// kInvalidArgument where finished ones are in the way, kIo. `plan` outlives the outputs.
  explicit DataOutputs(const DataPlan& plan);

  /// What the lines hold already.
  int64_t conversations() const { return conversations_; }
  int64_t replies() const { return replies_; }
  /// Replies in the lines whose features come next, in order, by add_features.
  std::span<const FeatureRecord> without_features() const { return without_features_; }

  void add_features(const std::string& record);
  /// A conversation: lines, and the records of its replies where features are wanted.
  void add(const std::string& lines, std::span<const std::string> records, int64_t replies);
  void sync();
  /// Gives the files their names.
  void finish();

 private:
  struct Progress;
  Progress read_progress(std::string_view text) const;
  bool features_are_finished(const Progress& progress) const;
  void resume_features(Progress progress);
  void refuse_existing(const std::string& path) const;

  const DataPlan& plan_;
  std::optional<JournalFile> lines_;
  std::optional<JournalFile> features_;  // nullopt: none wanted, or finished by an earlier run
  std::vector<FeatureRecord> without_features_;
  int64_t conversations_ = 0;
  int64_t replies_ = 0;
  int64_t feature_records_ = 0;
};

}  // namespace octet
