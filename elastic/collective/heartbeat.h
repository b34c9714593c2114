#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "elastic/transport/socket.h"

namespace sluice::elastic {

// Tells silence from work: a thread sends a byte to every peer ten times a second on a connection
// of its own, however long this process computes or reads, and listens for theirs. Thread-safe.
class Heartbeat {
 public:
  // By rank; a socket that is not open is not watched.
  Heartbeat(std::vector<Socket> sockets, double silence_seconds);
  ~Heartbeat();
  // The rank of a peer that has been silent for too long; -1: none. A peer that closed its
  // connection is not silent: its other connection tells.
  int silent() const { return silent_.load(std::memory_order_acquire); }

 private:
  void Run(const std::stop_token& stop);
  void Beat();

  std::vector<Socket> sockets_;
  const double silence_seconds_;
  SteadyClock clock_;
  std::vector<TimePoint> heard_;
  std::atomic<int> silent_{-1};
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace sluice::elastic
