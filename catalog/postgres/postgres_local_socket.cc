#include "catalog/postgres/postgres_local_socket_internal.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/abstract_socket.h"

namespace sluice::catalog {
namespace {

constexpr int kBacklog = 64;
constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

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
  AbstractAddress address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAbstractAddress(name, &address));
  LocalSocket made(socket(AF_UNIX, kType, 0));
  if (!made.open() || bind(made.descriptor(), &address.generic, length) != 0 ||
      listen(made.descriptor(), kBacklog) != 0) {
    return Failed("listening for other processes of this machine");
  }
  return made;
}

Result<LocalSocket> LocalSocket::Connect(const std::string& name) {
  AbstractAddress address;
  ASSIGN_OR_RETURN(const socklen_t length, MakeAbstractAddress(name, &address));
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
