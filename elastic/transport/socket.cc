#include "elastic/transport/socket.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace sluice::elastic {
namespace {

// Requested; the system grants what it allows: fewer alternations between sending and receiving.
constexpr int kBufferBytes = 4 << 20;
constexpr int kBacklog = 128;
constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::string_view kTcpPrefix = "tcp:";

union AnyAddress {
  sockaddr generic;
  sockaddr_un local;
  sockaddr_in internet;
  sockaddr_in6 internet6;
};

Status Option(int descriptor, int level, int name, int value) {
  if (setsockopt(descriptor, level, name, &value, sizeof(value)) != 0) {
    return SystemError("a socket option");
  }
  return Status();
}

Status Tune(int descriptor, bool tcp) {
  RETURN_IF_ERROR(Option(descriptor, SOL_SOCKET, SO_SNDBUF, kBufferBytes));
  RETURN_IF_ERROR(Option(descriptor, SOL_SOCKET, SO_RCVBUF, kBufferBytes));
  return tcp ? Option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1) : Status();
}

socklen_t UnixAddress(std::string_view name, AnyAddress* address) {
  address->local = {};
  address->local.sun_family = AF_UNIX;
  // The leading zero byte makes it an abstract name.
  std::memcpy(address->local.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

Result<socklen_t> TcpAddress(const std::string& host, uint16_t port, AnyAddress* address) {
  address->internet = {};
  address->internet.sin_family = AF_INET;
  address->internet.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &address->internet.sin_addr) == 1) {
    return static_cast<socklen_t>(sizeof(sockaddr_in));
  }
  address->internet6 = {};
  address->internet6.sin6_family = AF_INET6;
  address->internet6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, host.c_str(), &address->internet6.sin6_addr) == 1) {
    return static_cast<socklen_t>(sizeof(sockaddr_in6));
  }
  return InvalidArgument(fmt::format("'{}' is not a numeric address", host));
}

Result<std::string> RandomName() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    return Internal("the system has no random numbers");
  }
  std::string name = "sluice-";
  for (unsigned char byte : bytes) {
    name += fmt::format("{:02x}", byte);
  }
  return name;
}

}  // namespace

Status SystemError(const std::string& what) {
  return Unavailable(fmt::format("{}: {}", what, std::strerror(errno)));
}

Socket::~Socket() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

bool IsOfOwnUser(const Socket& socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

Listener::Kind Listener::KindFor(const std::string& host) {
  return host.starts_with("127.") ? Kind::kUnix : Kind::kTcp;
}

Result<Listener> Listener::Open(Kind kind, const std::string& host) {
  const bool tcp = kind == Kind::kTcp;
  Listener listener;
  AnyAddress address;
  socklen_t length = 0;
  if (tcp) {
    ASSIGN_OR_RETURN(length, TcpAddress(host, 0, &address));
  } else {
    ASSIGN_OR_RETURN(const std::string name, RandomName());
    length = UnixAddress(name, &address);
    listener.address_ = std::string(kUnixPrefix) + name;
  }
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  listener.socket_ = Socket(socket(address.generic.sa_family, type, 0));
  const int descriptor = listener.descriptor();
  if (descriptor < 0 || bind(descriptor, &address.generic, length) != 0 ||
      listen(descriptor, kBacklog) != 0) {
    return SystemError(fmt::format("listening for the other workers on {}", host));
  }
  if (tcp) {
    if (getsockname(descriptor, &address.generic, &length) != 0) {
      return SystemError("the port that the other workers are to use");
    }
    // The port is at the same place in both.
    listener.address_ = fmt::format("{}{}:{}", kTcpPrefix, host, ntohs(address.internet.sin_port));
  }
  // Accepted connections inherit what is set here.
  RETURN_IF_ERROR(Tune(descriptor, tcp));
  return listener;
}

Socket Listener::Accept() const {
  Socket socket(accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool tcp = address_.starts_with(kTcpPrefix);
  if (socket.open() && ((!tcp && !IsOfOwnUser(socket)) || !Tune(socket.descriptor(), tcp).ok())) {
    return Socket();
  }
  return socket;
}

Result<Socket> ConnectTo(const std::string& text) {
  AnyAddress address;
  socklen_t length = 0;
  const bool tcp = text.starts_with(kTcpPrefix);
  if (tcp) {
    const size_t colon = text.rfind(':');
    uint16_t port = 0;
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
    ASSIGN_OR_RETURN(length, TcpAddress(text.substr(kTcpPrefix.size(), colon - kTcpPrefix.size()),
                                        port, &address));
  } else if (text.starts_with(kUnixPrefix) && text.size() < sizeof(address.local.sun_path)) {
    length = UnixAddress(std::string_view(text).substr(kUnixPrefix.size()), &address);
  } else {
    return InvalidArgument(fmt::format("'{}' is not the address of a worker", text));
  }
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  Socket made(socket(address.generic.sa_family, type, 0));
  if (!made.open()) {
    return SystemError("a socket");
  }
  RETURN_IF_ERROR(Tune(made.descriptor(), tcp));
  if (connect(made.descriptor(), &address.generic, length) != 0 && errno != EINPROGRESS) {
    return SystemError(fmt::format("connecting to {}", text));
  }
  return made;
}

}  // namespace sluice::elastic
