#include "base/abstract_socket.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace sluice {

Result<socklen_t> MakeAbstractAddress(const std::string& name, AbstractAddress* address) {
  if (name.size() >= sizeof(address->local.sun_path)) {
    return InvalidArgument(fmt::format("'{}' is too long for the name of a socket", name));
  }
  address->local = {};
  address->local.sun_family = AF_UNIX;
  // The leading zero byte makes it an abstract name.
  std::memcpy(address->local.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

bool IsOurUsers(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

}  // namespace sluice
