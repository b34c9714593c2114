#include "server/gateway/strangers.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <linux/tcp.h>  // netinet's tcp_info has no bytes
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "base/client_address.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/oldest_of_most.h"
#include "server/gateway/client_login_internal.h"

namespace sluice::server {
namespace {

// Short enough that a flood is seen before gRPC has made much of it.
constexpr std::chrono::milliseconds kStrangersInterval(10);
constexpr double kSecondsBetweenLogLines = 10;
// Of the system's buffer, as long as the client is a stranger: gRPC takes all that is there at
// once, before anybody can look. The system doubles it.
constexpr int kReceiveBuffer = 16 << 10;
// Values of tcpi_state in which this side still reads.
constexpr int kEstablished = 1;
constexpr int kCloseWait = 8;

// As gRPC spells it; "": it is no TCP connection.
std::string PeerOf(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
    return fmt::format("ipv4:{}:{}", text, ntohs(four.sin_port));
  }
  if (address.ss_family != AF_INET6) {
    return "";
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    inet_ntop(AF_INET, &six.sin6_addr.s6_addr[12], text, sizeof text);
    return fmt::format("ipv4:{}:{}", text, ntohs(six.sin6_port));
  }
  inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  const std::string zone = six.sin6_scope_id != 0 ? fmt::format("%25{}", six.sin6_scope_id) : "";
  return fmt::format("ipv6:%5B{}{}%5D:{}", text, zone, ntohs(six.sin6_port));
}

// Bytes that the connection has received; nothing: it is closed.
std::optional<uint64_t> ReceivedBy(int descriptor) {
  tcp_info about{};
  socklen_t size = sizeof about;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &about, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_bytes_received) + sizeof about.tcpi_bytes_received ||
      (about.tcpi_state != kEstablished && about.tcpi_state != kCloseWait)) {
    return std::nullopt;
  }
  return about.tcpi_bytes_received;
}

void SetOption(int descriptor, int name, int value) {
  // The system may refuse or limit it.
  setsockopt(descriptor, SOL_SOCKET, name, &value, sizeof value);
}

// The system chooses its buffer again.
void FreeReceiveBuffer(int descriptor) {
#ifdef SO_BUF_LOCK
  SetOption(descriptor, SO_BUF_LOCK, 0);
#else
  constexpr int kLarge = 4 << 20;
  SetOption(descriptor, SO_RCVBUF, kLarge);
#endif
}

}  // namespace

Strangers::Strangers(Limits limits)
    : limits_(limits),
      of_all_{static_cast<double>(limits.bytes_of_all), clock_.Now()},
      watcher_([this](const std::stop_token& end) {
        pthread_setname_np(pthread_self(), "strangers");
        Watch(end);
      }) {}

Strangers::~Strangers() = default;

bool Strangers::Add(const elastic::Socket& connection) {
  std::string peer = PeerOf(connection.descriptor());
  if (peer.empty()) {
    return true;
  }
  std::string network = NetworkOf(AddressOf(peer));
  Stranger stranger{std::move(peer), std::move(network),
                    elastic::Socket::Duplicate(connection.descriptor()), clock_.Now()};
  if (!stranger.socket.open()) {  // nobody would see what it sends
    return false;
  }
  SetOption(connection.descriptor(), SO_RCVBUF, kReceiveBuffer);
  const MutexLock lock(mutex_);
  if (BudgetOf(stranger.network).left < 0 || of_all_.left < 0) {
    Disconnect(stranger);
    return false;
  }
  if (strangers_.size() >= limits_.most) {
    const auto oldest = OldestOfMost(strangers_, [](const Stranger& one) { return one.network; });
    Disconnect(*oldest);
    strangers_.erase(oldest);
  }
  strangers_.push_back(std::move(stranger));
  changed_.notify_all();
  return true;
}

bool Strangers::BeginCall(const std::string& peer) {
  const MutexLock lock(mutex_);
  const auto stranger = std::find_if(strangers_.begin(), strangers_.end(),
                                     [&peer](const Stranger& one) { return one.peer == peer; });
  if (stranger == strangers_.end()) {
    return false;
  }
  if (++stranger->calls > limits_.calls) {
    Disconnect(*stranger);
    strangers_.erase(stranger);
  }
  return true;
}

void Strangers::Welcome(const std::string& peer) {
  const MutexLock lock(mutex_);
  std::erase_if(strangers_, [&peer](const Stranger& stranger) {
    if (stranger.peer != peer) {
      return false;
    }
    FreeReceiveBuffer(stranger.socket.descriptor());
    return true;
  });
}

void Strangers::Watch(const std::stop_token& end) {
  const std::function<void()> look = [this]() REQUIRES(mutex_) { Look(); };
  MutexLock lock(mutex_);
  while (!end.stop_requested()) {
    changed_.wait(lock.native(), end, [this]() REQUIRES(mutex_) { return !strangers_.empty(); });
    // Logged by the callee; the next round tries again.
    [[maybe_unused]] const Status looked = Guarded("looking after clients without a login", look);
    changed_.wait_for(lock.native(), end, kStrangersInterval, [] { return false; });
  }
}

void Strangers::Budget::Refill(uint64_t bytes_a_second, TimePoint now) {
  const auto most = static_cast<double>(bytes_a_second);
  left = std::min(left + most * SecondsBetween(at, now), most);
  at = now;
}

Strangers::Budget& Strangers::BudgetOf(const std::string& network) {
  const TimePoint now = clock_.Now();
  of_all_.Refill(limits_.bytes_of_all, now);
  const Budget full{static_cast<double>(limits_.bytes_of_address), now};
  for (auto entry = of_addresses_.begin(); entry != of_addresses_.end();) {
    entry->second.Refill(limits_.bytes_of_address, now);
    entry = entry->second.left < full.left ? std::next(entry) : of_addresses_.erase(entry);
  }
  return of_addresses_.try_emplace(network, full).first->second;
}

void Strangers::Look() {
  std::erase_if(strangers_, [this](Stranger& stranger) REQUIRES(mutex_) {
    const std::optional<uint64_t> received = ReceivedBy(stranger.socket.descriptor());
    if (!received) {
      return true;
    }
    const uint64_t sent = *received - std::exchange(stranger.bytes, *received);
    if (sent == 0) {
      return false;
    }
    Budget& of_address = BudgetOf(stranger.network);
    of_all_.left -= std::clamp(of_address.left, 0.0, static_cast<double>(sent));
    of_address.left -= static_cast<double>(sent);
    const double seconds = SecondsBetween(stranger.since, clock_.Now());
    const double allowed =
        static_cast<double>(limits_.bytes) + seconds * static_cast<double>(limits_.bytes_a_second);
    if (static_cast<double>(*received) <= allowed && of_address.left >= 0 && of_all_.left >= 0) {
      return false;
    }
    Disconnect(stranger);
    return true;
  });
}

void Strangers::Disconnect(const Stranger& stranger) {
  // Resets the connection and drops what it has received, which gRPC would still read after a
  // shutdown: as much as the socket's buffer holds.
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  if (connect(stranger.socket.descriptor(), &nowhere, sizeof nowhere) != 0) {
    shutdown(stranger.socket.descriptor(), SHUT_RDWR);
  }
  const TimePoint now = clock_.Now();
  if (told_ == TimePoint{0} || SecondsBetween(told_, now) > kSecondsBetweenLogLines) {
    told_ = now;
    log::Warn(
        "a client at {} was disconnected: it sent {} bytes and began {} calls without logging in, "
        "or there were too many such clients",
        stranger.peer, stranger.bytes, stranger.calls);
  }
}

}  // namespace sluice::server
