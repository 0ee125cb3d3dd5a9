// Several processes that train one model together: sums of tensors over all of them and copies of
// the first one's, through libtorch's own c10d with the gloo backend. Not for starting processes:
// each is started with its rank and the place to meet. Invariant: every process ends a sum or a
// copy with the same bits.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "octet/train/tensor.h"

namespace octet::train {

struct ProcessPlace {
  int rank = 0;
  int processes = 1;
  std::string host = "127.0.0.1";  // of rank 0, where all meet
  int port = 0;
};

/// The address by which this machine reaches `host`, and so by which processes there reach this
/// one: "127.0.0.1" for a host that is this machine by its loopback. Nothing is sent. Throws
/// Error(kNotFound) for a host that has no address or no way to it.
std::string own_address_towards(const std::string& host);

class ProcessGroup {
 public:
  /// Waits until all processes have come, at most `wait_seconds`. Throws Error(kIo) when they do
  /// not.
  explicit ProcessGroup(const ProcessPlace& place, int wait_seconds = 60);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const;
  int processes() const;

  /// Each tensor becomes the sum over all processes, which call this with tensors of the same
  /// shapes. Throws Error(kIo) when a process is gone.
  void sum(std::span<Tensor> tensors);
  /// Each tensor becomes what it is in process 0; the rest is as for sum().
  void copy_from_first(std::span<Tensor> tensors);

 private:
  struct Members;
  std::unique_ptr<Members> members_;
};

}  // namespace octet::train
