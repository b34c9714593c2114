#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"

namespace sluice::executor {

class Room;

// The memory of a training in this process, counted together with that of all other jobs of the
// machine: it waits for it as a worker does for its place, but needs no processor. Gives it back
// when it is destroyed. Belongs to one thread.
class MemoryPlace {
 public:
  struct Request {
    std::string name;   // the job's
    std::string owner;  // the role that it runs for
    int64_t bytes = 0;
    int priority = 0;
  };
  // Blocks until there is room. `on_wait` is called if that takes longer than a moment. Cancelled:
  // `stop` came first. Less than 1/64 of the room is given without being counted (null); more than
  // all of it counts as all. 53200: more than a role may ever have (SlotArbiter).
  static Result<std::unique_ptr<MemoryPlace>> Take(Room& room, Request request,
                                                   const std::stop_token& stop,
                                                   const std::function<void()>& on_wait);
  ~MemoryPlace();
  MemoryPlace(const MemoryPlace&) = delete;
  MemoryPlace& operator=(const MemoryPlace&) = delete;

 private:
  MemoryPlace(Room& room, int64_t job) : room_(room), job_(job) {}

  Room& room_;
  const int64_t job_;
  int64_t taken_ = 0;  // bytes, by Room::WorkerStarted; 0: it still waits
};

}  // namespace sluice::executor
