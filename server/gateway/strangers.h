#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "elastic/transport/socket.h"

namespace sluice::server {

// The gRPC port's connections whose client has not logged in yet. gRPC 1.51 does not limit the
// streams that a client opens and resets (HTTP/2's rapid reset, CVE-2023-44487), each of which
// costs kilobytes, so the bytes that a connection may send before a login are limited here, of each
// connection, of each address (IPv6: network, NetworkOf) and of all together: who sends more is
// disconnected. What an address sends beyond its own share, before that is seen, is not taken from
// all. Thread-safe.
class Strangers {
 public:
  struct Limits {
    // Of one connection: TLS's handshake, a call's headers, and what an HTTP/2 stream takes before
    // the first message is read, or a whole message of SQLFlow, whose login is in it.
    uint64_t bytes = uint64_t{96} << 10;
    // For checks of health that never log in.
    uint64_t bytes_a_second = uint64_t{1} << 10;
    // Of the connections of one address, and of all together: at once, and again each second. While
    // they have none left, new connections are reset.
    uint64_t bytes_of_address = uint64_t{128} << 10;
    uint64_t bytes_of_all = uint64_t{512} << 10;
    // Calls of one connection, none of which logs in.
    int calls = 32;
    // Connections; a new one replaces the oldest of the address that has the most.
    size_t most = 128;
  };

  explicit Strangers(Limits limits);
  ~Strangers();
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  // A new connection; false: it is not to be served. Those at local addresses are not limited.
  [[nodiscard]] bool Add(const elastic::Socket& connection) EXCLUDES(mutex_);
  // Whether a call comes from a client that has not logged in yet. `peer`: its address, as gRPC
  // spells it.
  bool BeginCall(const std::string& peer) EXCLUDES(mutex_);
  // The client has logged in: its connection may send as much as it likes.
  void Welcome(const std::string& peer) EXCLUDES(mutex_);

 private:
  struct Stranger {
    std::string peer;
    std::string network;     // of its address
    elastic::Socket socket;  // another descriptor of the connection
    TimePoint since;
    uint64_t bytes = 0;  // received so far
    int calls = 0;
  };

  // What may still be sent, at the time `at`; below 0: too much was sent.
  struct Budget {
    double left = 0;
    TimePoint at{0};
    void Refill(uint64_t bytes_a_second, TimePoint now);
  };

  Budget& BudgetOf(const std::string& network) REQUIRES(mutex_);
  void Watch(const std::stop_token& end) EXCLUDES(mutex_);
  void Look() REQUIRES(mutex_);
  void Disconnect(const Stranger& stranger) REQUIRES(mutex_);

  const Limits limits_;
  const SteadyClock clock_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Stranger> strangers_ GUARDED_BY(mutex_);  // oldest first
  Budget of_all_ GUARDED_BY(mutex_);
  std::map<std::string, Budget> of_addresses_ GUARDED_BY(mutex_);  // without those that are full
  TimePoint told_ GUARDED_BY(mutex_){0};                           // of a disconnection, in the log
  std::jthread watcher_;  // ends before the members that it uses
};

}  // namespace sluice::server
