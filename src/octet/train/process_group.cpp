#include "octet/train/process_group.h"

#include <chrono>
#include <memory>
#include <netdb.h>
#include <sys/socket.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "octet/base/error.h"

namespace octet::train {
namespace {

[[noreturn]] void lost(const std::exception& reason) {
  throw Error(
      ErrorKind::kIo,
      fmt::format(
          "training together with other processes failed ({}); start all of them again, "
          "with --resume if a --state was saved",
          reason.what()
      )
  );
}

/// The local end of a datagram socket towards the address, as text; "" where none can be had.
std::string local_end_towards(const addrinfo& place) {
  const int descriptor = ::socket(place.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) {
    return "";
  }
  sockaddr_storage own{};
  socklen_t length = sizeof(own);
  auto* address = reinterpret_cast<sockaddr*>(&own);
  char text[NI_MAXHOST] = "";
  // Connecting a datagram socket sends nothing; it asks the routing table.
  if (::connect(descriptor, place.ai_addr, place.ai_addrlen) == 0 &&
      ::getsockname(descriptor, address, &length) == 0 &&
      ::getnameinfo(address, length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    text[0] = '\0';
  }
  ::close(descriptor);
  return text;
}

}  // namespace

std::string own_address_towards(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  // Any port but 0 does, nobody need listen at it.
  const int failed = ::getaddrinfo(host.c_str(), "9", &hints, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* place = list; place != nullptr; place = place->ai_next) {
    if (std::string own = local_end_towards(*place); !own.empty()) {
      return own;
    }
  }
  throw Error(
      ErrorKind::kNotFound,
      fmt::format(
          "this machine knows no way to '{}' ({}); --meet needs an address that all of them reach",
          host,
          failed != 0 ? ::gai_strerror(failed) : "no route"
      )
  );
}

struct ProcessGroup::Members {
  ProcessPlace place;
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
};

ProcessGroup::ProcessGroup(const ProcessPlace& place, int wait_seconds)
    : members_(std::make_unique<Members>()) {
  members_->place = place;
  const std::string own_address = own_address_towards(place.host);
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
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address));
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

void ProcessGroup::copy_from_first(std::span<Tensor> tensors) {
  try {
    for (Tensor& tensor : tensors) {
      std::vector<Tensor> one = {tensor};
      members_->group->broadcast(one)->wait();
    }
  } catch (const std::exception& reason) {
    lost(reason);
  }
}

}  // namespace octet::train
