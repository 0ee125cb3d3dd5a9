// Names under which files and folders are written before they get their own: beside it, with the
// number of the process and one of a name, so that what a killed process left behind is known as
// such. Creates nothing. Invariant: no two that live at a time in a process are the same.
#pragma once

#include <string>
#include <string_view>

namespace octet {

class TemporaryName {
 public:
  /// "<path>.<process>-<n>.partial" with the next n. Something may stand there: the leftover of a
  /// killed process that had our number. renew() then.
  explicit TemporaryName(const std::string& path);
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

  /// Takes the next n instead.
  void renew(const std::string& path);

  const std::string& path() const { return path_; }

 private:
  int number_;
  std::string path_;
};

/// Whether `name` is a temporary one of `output` (both without folders) that nobody writes to any
/// more: its process is gone, or is this one, which knows better.
bool is_abandoned_temporary(std::string_view name, std::string_view output);

}  // namespace octet
