#include "catalog/postgres/postgres_local_socket_internal.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sluice::catalog {
namespace {

constexpr int kBacklog = 64;
constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

union Address {
  sockaddr generic;
  sockaddr_un local;
};

// The leading zero byte makes it an abstract name.
Result<socklen_t> MakeAddress(const std::string& name, Address* address) {
  if (name.size() >= sizeof(address->local.sun_path)) {
    return InvalidArgument(fmt::format("'{}' is too long for the name of a socket", name));
  }
  address->local = {};
  address->local.sun_family = AF_UNIX;
  std::memcpy(address->local.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

// All users can see an abstract name, and any of them can bind it.
bool IsOurUsers(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

Status Failed(std::string_view what) {
  return Unavailable(fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

LocalSocket::~LocalSocket() {
  if (open()) {
    close(descriptor_);
  }
}

Result<LocalSocket> LocalSocket::Listen(const std::string& name) {
  Address address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAddress(name, &address));
  LocalSocket made(socket(AF_UNIX, kType, 0));
  if (!made.open() || bind(made.descriptor(), &address.generic, length) != 0 ||
      listen(made.descriptor(), kBacklog) != 0) {
    return Failed("listening for other processes of this machine");
  }
  return made;
}

Result<LocalSocket> LocalSocket::Connect(const std::string& name) {
  Address address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAddress(name, &address));
  LocalSocket made(socket(AF_UNIX, kType, 0));
  if (!made.open() || connect(made.descriptor(), &address.generic, length) != 0) {
    return Failed("connecting to another process of this machine");
  }
  if (!IsOurUsers(made.descriptor())) {
    return Unavailable("another user's process has the name of one of ours");
  }
  return made;
}

LocalSocket LocalSocket::Accept() const {
  LocalSocket accepted(accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  return accepted.open() && IsOurUsers(accepted.descriptor()) ? std::move(accepted) : LocalSocket();
}

void LocalSocket::HangUp() const {
  shutdown(descriptor_, SHUT_RDWR);
}

}  // namespace sluice::catalog
