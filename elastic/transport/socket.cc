#include "elastic/transport/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
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
constexpr std::string_view kAbstractPrefix = "unix-abstract:";

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

// `abstract`: the leading zero byte makes it an abstract name.
socklen_t LocalAddress(std::string_view name, bool abstract, AnyAddress* address) {
  address->local = {};
  address->local.sun_family = AF_UNIX;
  std::memcpy(address->local.sun_path + (abstract ? 1 : 0), name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}
socklen_t UnixAddress(std::string_view name, AnyAddress* address) {
  return LocalAddress(name, true, address);
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

Socket Socket::Duplicate(int descriptor) {
  return Socket(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

Socket::~Socket() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

bool WaitFor(int descriptor, short events, std::chrono::steady_clock::time_point until) {
  for (;;) {
    int wait = -1;
    if (until != std::chrono::steady_clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
          until - std::chrono::steady_clock::now());
      wait = static_cast<int>(std::max<int64_t>(left.count() + 1, 0));
    }
    pollfd entry{descriptor, events, 0};
    if (poll(&entry, 1, wait) > 0) {
      return true;
    }
    if (std::chrono::steady_clock::now() >= until) {
      return false;
    }
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

namespace {

Result<Socket> Connect(const AnyAddress& address, socklen_t length, const std::string& text) {
  const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  Socket made(socket(address.generic.sa_family, type, 0));
  if (!made.open()) {
    return SystemError("a socket");
  }
  RETURN_IF_ERROR(Tune(made.descriptor(), address.generic.sa_family != AF_UNIX));
  if (connect(made.descriptor(), &address.generic, length) != 0 && errno != EINPROGRESS) {
    return SystemError(fmt::format("connecting to {}", text));
  }
  return made;
}

// "HOST:PORT"
Result<socklen_t> TcpAddressOf(std::string_view text, AnyAddress* address) {
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon != std::string_view::npos) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
  }
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  return TcpAddress(std::string(host), port, address);
}

}  // namespace

Result<Socket> ConnectTo(const std::string& text) {
  AnyAddress address;
  socklen_t length = 0;
  if (text.starts_with(kTcpPrefix)) {
    ASSIGN_OR_RETURN(length,
                     TcpAddressOf(std::string_view(text).substr(kTcpPrefix.size()), &address));
  } else if (text.starts_with(kUnixPrefix) && text.size() < sizeof(address.local.sun_path)) {
    length = UnixAddress(std::string_view(text).substr(kUnixPrefix.size()), &address);
  } else {
    return InvalidArgument(fmt::format("'{}' is not the address of a worker", text));
  }
  return Connect(address, length, text);
}

Result<Socket> ConnectToServer(const std::string& text) {
  AnyAddress address;
  socklen_t length = 0;
  const bool abstract = text.starts_with(kAbstractPrefix);
  if (abstract || text.starts_with(kUnixPrefix)) {
    const std::string_view name =
        std::string_view(text).substr((abstract ? kAbstractPrefix : kUnixPrefix).size());
    if (name.empty() || name.size() + 1 > sizeof(address.local.sun_path)) {
      return InvalidArgument(fmt::format("'{}' is not a name for a local address", name));
    }
    length = LocalAddress(name, abstract, &address);
  } else {
    ASSIGN_OR_RETURN(length, TcpAddressOf(text, &address));
  }
  ASSIGN_OR_RETURN(Socket socket, Connect(address, length, text));
  TuneServerConnection(socket);
  return socket;
}

void TuneServerConnection(const Socket& socket) {
  constexpr int kProbeSeconds = 1, kProbes = 2, kUnacknowledgedMs = 3'000;
  const auto set = [&socket](int level, int name, int value) {
    setsockopt(socket.descriptor(), level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_SNDBUF, kBufferBytes);
  set(SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

}  // namespace sluice::elastic
