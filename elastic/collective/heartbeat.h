#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "elastic/ids.h"
#include "elastic/transport/connection.h"

namespace sluice::elastic {

// Distinguishes silence from work: a thread sends a byte to every peer ten times a second on a
// separate connection, however long this process computes or reads, and listens for theirs.
// Thread-safe.
class Heartbeat {
 public:
  // By rank; a connection that is not open is not watched.
  Heartbeat(std::vector<Connection> peers, double silence_seconds);
  ~Heartbeat();
  // A peer that has been silent for too long; nullopt: no peer. A peer that closed its connection
  // is not silent: its other connection shows that it is gone.
  std::optional<Rank> silent() const {
    const Rank rank = silent_.load(std::memory_order_acquire);
    return rank == kNoRank ? std::nullopt : std::optional(rank);
  }

 private:
  static constexpr Rank kNoRank{0xFFFFFFFF};
  void Run(const std::stop_token& stop);
  void SendHeartbeat();

  std::vector<Connection> peers_;
  const double silence_seconds_;
  SteadyClock clock_;
  std::vector<TimePoint> heard_;
  std::atomic<Rank> silent_ = kNoRank;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice::elastic
