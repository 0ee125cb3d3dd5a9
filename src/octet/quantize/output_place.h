// Where a new checkpoint is to appear: checks before hours of work, and folders that appear
// complete or not at all (files do so by formats/atomic_file.h). Invariant: nothing under the final
// name is touched before the new content is complete and synced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "octet/formats/temporary_name.h"

namespace octet {

enum class ExistingOutput { kRefuse, kReplace };

enum class OutputKind { kFile, kFolder };

/// Refuses an output that exists (unless it may be replaced), that is one of the inputs or holds
/// one, that is a folder where a file is to be or a folder without a checkpoint, whose parent
/// folder is missing, or that `bytes` do not fit beside. Empty inputs are none. Removes what a
/// killed run left behind under temporary names. Throws Error: kInvalidArgument, kNotFound,
/// kResourceExhausted.
void prepare_output(
    const std::vector<std::string>& inputs,
    const std::string& output,
    int64_t bytes,
    ExistingOutput existing,
    OutputKind kind = OutputKind::kFile
);

/// Refuses outputs of one run that would be written over each other. `names` says for the message
/// whose they are: "-o and --features". Empty outputs are none. Throws Error(kInvalidArgument).
void refuse_one_place_twice(const std::vector<std::string>& outputs, std::string_view names);

class AtomicFolder {
 public:
  /// Creates a temporary folder beside `path`. Throws Error(kIo).
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// Where a file of the folder is to be written.
  std::string file(const std::string& name) const { return temporary_.path() + "/" + name; }

  /// Syncs the folder and gives it its name, replacing a folder or file that has it: in one step
  /// where the file system can exchange names, else the old one comes back should the second step
  /// fail.
  void finish();

 private:
  std::string path_;
  TemporaryName temporary_;
  bool finished_ = false;
};

}  // namespace octet
