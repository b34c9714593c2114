#include "elastic/transport/acceptor.h"

#include <fmt/core.h>
#include <linux/tcp.h>  // netinet's tcp_info has no bytes
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "base/client_address.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/oldest_of_most.h"

namespace sluice::elastic {
namespace {

constexpr int kListenBacklog = 1'024;
// Connections that have sent nothing yet, or wait for room: more than ever connect at once, and few
// enough to be checked one by one.
constexpr size_t kMaxWaiting = 128;
constexpr std::chrono::seconds kLongestSilence(10);
// Long enough for connections without a call to be dropped.
constexpr std::chrono::seconds kLongestWaitForRoom(2);
// Accepted before those that have sent something are served.
constexpr int kAcceptsInTurn = 64;
constexpr int kLookMs = 1'000;
// Without a free descriptor or room: pauses until one may have been closed.
constexpr timespec kPause{0, 20'000'000};
// Connections that were handed on, among the process's descriptors; the rest is for databases,
// files and connections that this process opens itself.
constexpr size_t kMaxConnections = 10'000;
constexpr size_t kShareOfDescriptors = 2;
// When there is no room for another: longer than a connection with a call is silent, since those
// are pinged.
constexpr uint32_t kIdleMsWhenFull = 20'000;
// The same for connections that have sent less than any call needs: HTTP/2's preface, settings. A
// client that was only preparing a connection reconnects without noticing.
constexpr uint32_t kIdleMsWithoutACall = 500;
constexpr uint64_t kBytesOfACall = 128;
// How many may be closing at the same time in excess of the maximum.
constexpr int kDropsInTurn = 64;

size_t MostConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return kMaxConnections;
  }
  return std::min<size_t>(kMaxConnections, limit.rlim_cur / kShareOfDescriptors);
}

uint64_t Inode(int descriptor) {
  struct stat about {};
  return fstat(descriptor, &about) == 0 ? about.st_ino : 0;
}

// Whether a connection has been silent for so long that another may replace it; false if the system
// does not tell.
bool MayBeDropped(int descriptor) {
  tcp_info about{};
  socklen_t size = sizeof about;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &about, &size) != 0) {
    return false;
  }
  const bool counted = size >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  const bool no_call = counted && about.tcpi_bytes_received < kBytesOfACall;
  return about.tcpi_last_data_recv > (no_call ? kIdleMsWithoutACall : kIdleMsWhenFull);
}

void SetOption(const Socket& socket, int level, int name, int value) {
  // Optional settings for speed or clarity.
  setsockopt(socket.descriptor(), level, name, &value, sizeof value);
}

}  // namespace

Result<std::unique_ptr<Acceptor>> Acceptor::Listen(const std::string& address) {
  std::unique_ptr<Acceptor> acceptor(new Acceptor());
  acceptor->wake_ = Socket(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!acceptor->wake_.open()) {
    return SystemError("an eventfd");
  }
  constexpr std::string_view kAbstract = "unix-abstract:";
  constexpr std::string_view kPath = "unix:";
  const size_t colon = address.rfind(':');
  if (address.starts_with(kAbstract)) {
    RETURN_IF_ERROR(
        acceptor->ListenLocally(std::string_view(address).substr(kAbstract.size()), true));
  } else if (address.starts_with(kPath)) {
    RETURN_IF_ERROR(acceptor->ListenLocally(std::string_view(address).substr(kPath.size()), false));
  } else if (colon == std::string::npos || colon + 1 == address.size()) {
    return InvalidArgument(fmt::format("the address must be HOST:PORT, not '{}'", address));
  } else {
    std::string host = address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    RETURN_IF_ERROR(acceptor->ListenOn(host, address.substr(colon + 1)));
  }
  return acceptor;
}

Status Acceptor::ListenLocally(std::string_view name, bool abstract) {
  local_ = true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t first = abstract ? 1 : 0;  // the leading zero byte makes it an abstract name
  if (name.empty() || name.size() + 1 > sizeof(address.sun_path)) {
    return InvalidArgument(fmt::format("'{}' is not a name for a local address", name));
  }
  std::memcpy(address.sun_path + first, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  struct stat about {};
  if (!abstract && stat(address.sun_path, &about) == 0 && S_ISSOCK(about.st_mode)) {
    unlink(address.sun_path);  // of a process that was killed
  }
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open() ||
      bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      listen(socket.descriptor(), kListenBacklog) != 0) {
    return SystemError(fmt::format("listening on {}", name));
  }
  listeners_.push_back(std::move(socket));
  return Status();
}

Status Acceptor::ListenOn(const std::string& host, const std::string& port) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
  if (failed != 0) {
    return Unavailable(fmt::format("listening on {}:{}: {}", host, port, gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  Status status = Unavailable(fmt::format("{} has no address", host));
  for (addrinfo* one = found; one != nullptr; one = one->ai_next) {
    // All of a name's addresses get the port assigned to the first one.
    in_port_t* const place = one->ai_family == AF_INET6
                                 ? &reinterpret_cast<sockaddr_in6*>(one->ai_addr)->sin6_port
                                 : &reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_port;
    if (port_ != 0) {
      *place = htons(static_cast<in_port_t>(port_));
    }
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open()) {
      status = SystemError(fmt::format("listening on {}:{}", host, port));
      continue;  // a machine without IPv6
    }
    // Accepted connections inherit TCP_NODELAY.
    SetOption(socket, IPPROTO_TCP, TCP_NODELAY, 1);
    SetOption(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    if (one->ai_family == AF_INET6) {
      // "[::]" means every address; the other addresses of a name are bound separately.
      SetOption(socket, IPPROTO_IPV6, IPV6_V6ONLY, one->ai_next != nullptr || port_ != 0 ? 1 : 0);
    }
    if (bind(socket.descriptor(), one->ai_addr, one->ai_addrlen) != 0 ||
        listen(socket.descriptor(), kListenBacklog) != 0) {
      status = SystemError(fmt::format("listening on {}:{}", host, port));
      continue;
    }
    socklen_t length = one->ai_addrlen;
    if (port_ == 0 && getsockname(socket.descriptor(), one->ai_addr, &length) == 0) {
      port_ = ntohs(*place);
    }
    listeners_.push_back(std::move(socket));
  }
  return listeners_.empty() ? status : Status();
}

Acceptor::~Acceptor() {
  const uint64_t one = 1;
  // Fails only if the counter is full, and then it is already readable.
  [[maybe_unused]] const ssize_t written = write(wake_.descriptor(), &one, sizeof one);
}

void Acceptor::Start(HandOn hand_on) {
  hand_on_ = std::move(hand_on);
  thread_ = std::jthread([this] {
    pthread_setname_np(pthread_self(), "acceptor");
    Run();
  });
}

void Acceptor::Run() {
  std::vector<pollfd> entries;
  std::vector<bool> readable;
  for (;;) {
    entries = {{wake_.descriptor(), POLLIN, 0}};
    for (const Socket& listener : listeners_) {
      entries.push_back({listener.descriptor(), POLLIN, 0});
    }
    for (const Waiting& one : waiting_) {
      entries.push_back({one.socket.descriptor(), POLLIN, 0});
    }
    if (poll(entries.data(), entries.size(), waiting_.empty() ? -1 : kLookMs) < 0) {
      continue;  // EINTR
    }
    if (entries[0].revents != 0) {
      return;
    }
    // An exception here costs connections, not the server.
    const Status status = Guarded("accepting connections", [&]() -> Status {
      readable.clear();
      for (size_t i = 1 + listeners_.size(); i < entries.size(); ++i) {
        readable.push_back(entries[i].revents != 0);
      }
      HandOnReadable(readable);
      DropOverdue(clock_.Now());
      for (size_t i = 0; i < listeners_.size(); ++i) {
        if (entries[1 + i].revents != 0) {
          AcceptFrom(listeners_[i]);
        }
      }
      return Status();
    });
    if (!status.ok() || full_) {
      nanosleep(&kPause, nullptr);  // connections that wait for room are always readable
    }
  }
}

void Acceptor::AcceptFrom(const Socket& listener) {
  for (int i = 0; i < kAcceptsInTurn; ++i) {
    Socket connection(
        accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (waiting_.empty()) {
          nanosleep(&kPause, nullptr);
          return;
        }
        GiveUpOne();
        continue;
      }
      if (errno == EAGAIN) {
        return;
      }
      continue;  // this one was closed
    }
    if (local_ && !IsOfOwnUser(connection)) {
      log::Warn("a process of another user was refused at a local address");
      continue;
    }
    if (waiting_.size() >= kMaxWaiting) {
      GiveUpOne();
    }
    std::string network = NetworkOf(AddressOfPeer(connection.descriptor()));
    waiting_.push_back({std::move(connection), std::move(network), clock_.Now()});
  }
}

void Acceptor::GiveUpOne() {
  waiting_.erase(OldestOfMost(waiting_, [](const Waiting& one) { return one.network; }));
}

// `readable`: connections that have sent something or were closed, in the order of waiting_.
void Acceptor::HandOnReadable(const std::vector<bool>& readable) {
  bool room = true;
  size_t next = 0;
  for (auto one = waiting_.begin(); one != waiting_.end(); ++next) {
    const auto at = one++;
    char byte = 0;
    if (!readable[next]) {
      continue;
    }
    if (recv(at->socket.descriptor(), &byte, 1, MSG_PEEK) <= 0) {
      waiting_.erase(at);  // it was closed
      continue;
    }
    room = room && HasRoom();
    if (!room) {
      at->since = at->spoke ? at->since : clock_.Now();
      at->spoke = true;
      continue;
    }
    Socket connection = std::move(at->socket);
    waiting_.erase(at);
    handed_on_.push_back({connection.descriptor(), Inode(connection.descriptor())});
    hand_on_(std::move(connection));
  }
  if (!room && !full_) {
    log::Warn("connections wait for others to end: there are {}", handed_on_.size());
  }
  full_ = !room;
}

bool Acceptor::HasRoom() {
  const size_t most = MostConnections();
  if (handed_on_.size() < most) {
    return true;
  }
  std::erase_if(handed_on_, [](const HandedOn& one) { return Inode(one.descriptor) != one.inode; });
  if (handed_on_.size() < most) {
    return true;
  }
  // Their owner closes them when it reads the end.
  int drops = 0;
  std::erase_if(handed_on_, [&drops](const HandedOn& one) {
    if (drops == kDropsInTurn || !MayBeDropped(one.descriptor)) {
      return false;
    }
    shutdown(one.descriptor, SHUT_RDWR);
    ++drops;
    return true;
  });
  return handed_on_.size() < most;
}

void Acceptor::DropOverdue(TimePoint now) {
  std::erase_if(waiting_, [now](const Waiting& one) {
    return now - one.since >= (one.spoke ? kLongestWaitForRoom : kLongestSilence);
  });
}

}  // namespace sluice::elastic
