#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/abstract_socket.h"
#include "executor/processes/packets_internal.h"

namespace sluice::executor {
namespace {

constexpr int kBacklog = 64;
// Enough for an answer of one row with long texts; longer ones are read from the catalog.
constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kType = SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC;

Status Failed(std::string_view what) {
  return Unavailable(fmt::format("{}: {}", what, std::strerror(errno)));
}

void MakeRoom(int descriptor) {
  constexpr int kBytes = static_cast<int>(kMaxBytes);
  // As much as the system allows; a packet that does not fit is not sent.
  static_cast<void>(setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof(kBytes)));
}

}  // namespace

Result<PacketSocket> PacketSocket::Connect(const std::string& name) {
  AbstractAddress address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAbstractAddress(name, &address));
  Descriptor made(socket(AF_UNIX, kType, 0));
  if (!made.open() || connect(made.get(), &address.generic, length) != 0) {
    return Failed("connecting to another process of this machine");
  }
  if (!IsOurUsers(made.get())) {
    return Status(Code::kPermissionDenied, "another user's process has the name of one of ours");
  }
  MakeRoom(made.get());
  return PacketSocket(std::move(made));
}

bool PacketSocket::Send(std::string_view packet) const {
  return send(descriptor(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(packet.size());
}

Result<std::optional<std::string>> PacketSocket::Receive() const {
  // The size of the next packet, even if it exceeds the buffer.
  const ssize_t size = recv(descriptor(), nullptr, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
  if (size < 0) {
    return errno == EAGAIN || errno == EINTR ? Result<std::optional<std::string>>(std::nullopt)
                                             : Failed("the other process");
  }
  if (size == 0) {  // empty packets are never sent
    return Unavailable("the other process has closed the connection");
  }
  std::string packet(std::min(static_cast<size_t>(size), kMaxBytes), '\0');
  if (recv(descriptor(), packet.data(), packet.size(), MSG_DONTWAIT) < 0) {
    return Failed("the other process");
  }
  return std::optional<std::string>(std::move(packet));
}

void PacketSocket::HangUp() const {
  shutdown(descriptor(), SHUT_RDWR);
}

Result<PacketPair> MakePacketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, kType, 0, ends) != 0) {
    return SystemError("a connection to a process of a job");
  }
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  ours.MoveUp();
  theirs.MoveUp();
  MakeRoom(ours.get());
  MakeRoom(theirs.get());
  return PacketPair{PacketSocket(std::move(ours)), PacketSocket(std::move(theirs))};
}

Result<PacketListener> PacketListener::Open(const std::string& name) {
  AbstractAddress address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAbstractAddress(name, &address));
  PacketListener listener;
  listener.descriptor_ = Descriptor(socket(AF_UNIX, kType, 0));
  if (!listener.open()) {
    return SystemError("a socket for other processes of this machine");
  }
  if (bind(listener.descriptor(), &address.generic, length) != 0) {
    return errno == EADDRINUSE ? AlreadyExists("another process listens there")
                               : SystemError("listening for other processes of this machine");
  }
  if (listen(listener.descriptor(), kBacklog) != 0) {
    return SystemError("listening for other processes of this machine");
  }
  return listener;
}

PacketSocket PacketListener::Accept() const {
  Descriptor accepted(accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.open() || !IsOurUsers(accepted.get())) {
    return PacketSocket();
  }
  MakeRoom(accepted.get());
  return PacketSocket(std::move(accepted));
}

Result<PollWaker> PollWaker::Make() {
  PollWaker waker;
  waker.descriptor_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!waker.descriptor_.open()) {
    return SystemError("an event descriptor");
  }
  return waker;
}

void PollWaker::Wake() const {
  const uint64_t one = 1;
  // A full counter has already woken the thread.
  [[maybe_unused]] const ssize_t ignored = write(descriptor(), &one, sizeof(one));
}

void PollWaker::Clear() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t ignored = read(descriptor(), &count, sizeof(count));
}

void PollForReading(const std::vector<int>& descriptors,
                    std::optional<std::chrono::steady_clock::time_point> until) {
  std::vector<pollfd> polled;
  polled.reserve(descriptors.size());
  for (const int descriptor : descriptors) {
    polled.push_back({descriptor, POLLIN, 0});
  }
  int timeout = -1;
  if (until.has_value()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*until - std::chrono::steady_clock::now());
    timeout =
        static_cast<int>(std::clamp<int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
  }
  poll(polled.data(), polled.size(), timeout);  // the caller looks again
}

}  // namespace sluice::executor
