#include "octet/train/process_group.h"

#include <chrono>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet::train {
namespace {

[[noreturn]] void lost(const std::exception& reason) {
  throw Error(
      ErrorKind::kIo,
      fmt::format(
          "training together with other processes failed ({}); start all of them anew, they go on "
          "from the last saved state",
          reason.what()
      )
  );
}

/// What this process can be reached by: the loopback where all are on one machine, else the address
/// that belongs to the machine's name.
std::shared_ptr<gloo::transport::Device> own_device(const std::string& host) {
  const bool one_machine = host == "localhost" || host.starts_with("127.");
  return one_machine ? c10d::ProcessGroupGloo::createDeviceForHostname(host)
                     : c10d::ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

struct ProcessGroup::Members {
  ProcessPlace place;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
};

ProcessGroup::ProcessGroup(const ProcessPlace& place, int wait_seconds)
    : members_(std::make_unique<Members>()) {
  members_->place = place;
  try {
    c10d::TCPStoreOptions meeting;
    meeting.port = static_cast<uint16_t>(place.port);
    meeting.isServer = place.rank == 0;
    meeting.numWorkers = static_cast<size_t>(place.processes);
    meeting.timeout = std::chrono::seconds(wait_seconds);
    members_->store = c10::make_intrusive<c10d::TCPStore>(place.host, meeting);
    members_->store->setTimeout(meeting.timeout);
    auto options = c10d::ProcessGroupGloo::Options::create();
    options->timeout = std::chrono::minutes(30);  // a validation may keep one process busy
    options->devices.push_back(own_device(place.host));
    members_->group = c10::make_intrusive<c10d::ProcessGroupGloo>(
        members_->store, place.rank, place.processes, options
    );
  } catch (const std::exception& reason) {
    throw Error(
        ErrorKind::kIo,
        fmt::format(
            "process {} of {} did not meet the others at {}:{} within {} s ({}); start all of them "
            "with the same --meet and --processes",
            place.rank,
            place.processes,
            place.host,
            place.port,
            wait_seconds,
            reason.what()
        )
    );
  }
}

ProcessGroup::~ProcessGroup() = default;

int ProcessGroup::rank() const {
  return members_->place.rank;
}

int ProcessGroup::processes() const {
  return members_->place.processes;
}

void ProcessGroup::sum(std::span<Tensor> tensors) {
  try {
    for (Tensor& tensor : tensors) {
      std::vector<Tensor> one = {tensor};
      members_->group->allreduce(one)->wait();
    }
  } catch (const std::exception& reason) {
    lost(reason);
  }
}

}  // namespace octet::train
