#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "base/mutex.h"

namespace sluice::server {

// The calls that have begun and not yet sent their message. Each holds a thread, and nobody has
// logged in yet, so their number and time are limited: a call that is too old is cancelled, and
// where there are too many, of one address (IPv6: network, NetworkOf) or in all, the oldest is.
// Clients of gRPC send the message along with the call. Thread-safe.
class FirstMessages {
 public:
  static constexpr std::chrono::seconds kLongest{10};
  static constexpr size_t kMost = 48;
  static constexpr size_t kMostOfAddress = 16;

  explicit FirstMessages(std::chrono::milliseconds longest = kLongest);
  ~FirstMessages();  // after all waits

 private:
  struct Call {
    std::string network;  // of its address
    std::chrono::steady_clock::time_point since;
    std::function<void()> cancel;  // empty: it is cancelled
  };

 public:
  // A call that waits, until this is destroyed.
  class Wait {
   public:
    Wait(FirstMessages& calls, std::list<Call>::iterator call) : calls_(calls), call_(call) {}
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    FirstMessages& calls_;
    const std::list<Call>::iterator call_;
  };
  // `address`: the caller's, without the port. `cancel`: ends the call, without waiting.
  Wait Begin(const std::string& address, std::function<void()> cancel) EXCLUDES(mutex_);

 private:
  // Of `network`; null: of any.
  void CancelOldest(const std::string* network, size_t most) REQUIRES(mutex_);
  void Watch(const std::stop_token& end) EXCLUDES(mutex_);

  const std::chrono::milliseconds longest_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Call> calls_ GUARDED_BY(mutex_);  // oldest first
  std::jthread watcher_;                      // ends before the members that it uses
};

}  // namespace sluice::server
