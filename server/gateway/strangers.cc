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
#include <optional>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"

namespace sluice::server {
namespace {

// A flood fills a megabyte in about that time.
constexpr std::chrono::milliseconds kLookInterval(10);
constexpr double kSecondsBetweenLogLines = 10;
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

}  // namespace

Strangers::Strangers(Limits limits)
    : limits_(limits),
      left_of_all_(static_cast<double>(limits.bytes_of_all)),
      watcher_([this](const std::stop_token& end) {
        pthread_setname_np(pthread_self(), "strangers");
        Watch(end);
      }) {}

Strangers::~Strangers() = default;

void Strangers::Add(const elastic::Socket& connection) {
  Stranger stranger{PeerOf(connection.descriptor()),
                    elastic::Socket::Duplicate(connection.descriptor()), clock_.Now()};
  if (stranger.peer.empty()) {
    return;
  }
  if (!stranger.socket.open()) {  // nobody would see what it sends
    shutdown(connection.descriptor(), SHUT_RDWR);
    return;
  }
  const MutexLock lock(mutex_);
  if (strangers_.size() >= limits_.most) {
    Disconnect(strangers_.front());
    strangers_.pop_front();
  }
  strangers_.push_back(std::move(stranger));
  changed_.notify_all();
}

bool Strangers::IsStranger(const std::string& peer) {
  const MutexLock lock(mutex_);
  return std::any_of(strangers_.begin(), strangers_.end(),
                     [&peer](const Stranger& stranger) { return stranger.peer == peer; });
}

void Strangers::Welcome(const std::string& peer) {
  const MutexLock lock(mutex_);
  std::erase_if(strangers_, [&peer](const Stranger& stranger) { return stranger.peer == peer; });
}

void Strangers::Watch(const std::stop_token& end) {
  MutexLock lock(mutex_);
  while (!end.stop_requested()) {
    changed_.wait(lock.native(), end,
                  [this]() NO_THREAD_SAFETY_ANALYSIS { return !strangers_.empty(); });
    // Logged by the callee; the next round tries again.
    [[maybe_unused]] const Status looked = Guarded("looking after clients without a login",
                                                   [this]() NO_THREAD_SAFETY_ANALYSIS { Look(); });
    changed_.wait_for(lock.native(), end, kLookInterval, [] { return false; });
  }
}

void Strangers::Look() {
  const TimePoint now = clock_.Now();
  const auto most = static_cast<double>(limits_.bytes_of_all);
  left_of_all_ = std::min(left_of_all_ + most * SecondsBetween(looked_, now), most);
  looked_ = now;
  std::erase_if(strangers_, [this, now](Stranger& stranger) NO_THREAD_SAFETY_ANALYSIS {
    const std::optional<uint64_t> received = ReceivedBy(stranger.socket.descriptor());
    if (!received) {
      return true;
    }
    left_of_all_ -= static_cast<double>(*received - stranger.bytes);
    const bool sends = *received > std::exchange(stranger.bytes, *received);
    const double seconds = SecondsBetween(stranger.since, now);
    const double allowed =
        static_cast<double>(limits_.bytes) + seconds * static_cast<double>(limits_.bytes_a_second);
    if (static_cast<double>(*received) <= allowed && (left_of_all_ >= 0 || !sends)) {
      return false;
    }
    Disconnect(stranger);
    return true;
  });
}

void Strangers::Disconnect(const Stranger& stranger) {
  shutdown(stranger.socket.descriptor(), SHUT_RDWR);
  const TimePoint now = clock_.Now();
  if (told_ == TimePoint{0} || SecondsBetween(told_, now) > kSecondsBetweenLogLines) {
    told_ = now;
    log::Warn(
        "a client at {} was disconnected: it sent {} bytes without logging in, or there were too "
        "many such clients",
        stranger.peer, stranger.bytes);
  }
}

}  // namespace sluice::server
