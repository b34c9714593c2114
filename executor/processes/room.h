#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace sluice::executor {

// What a machine gives to the workers and servers of its jobs.
struct RoomSize {
  double slots = 0;          // processors that workers may ask for; 0: the machine's
  int64_t memory_bytes = 0;  // that workers and servers may ask for; 0: the machine's
};
// With the machine's own where it says 0.
RoomSize WithMachine(RoomSize size);

// Who grants jobs their workers: the SlotArbiter itself, or a RoomLink to one of another process.
// Thread-safe.
class Room {
 public:
  struct Request {
    std::string name;
    uint32_t min = 1, max = 1;
    int priority = 0;
    double cpu = 1;            // of a worker; servers and masters take no slot
    int64_t memory_bytes = 0;  // of a worker
    uint32_t servers = 0;
    int64_t server_memory_bytes = 0;  // of each
  };
  struct Grant {
    uint32_t workers = 0;  // so many may run from now on; more than that have to go
    uint32_t wanted = 0;   // so many will be granted once there is room
  };
  using OnGrant = std::function<void(const Grant&)>;  // from the room's thread; must not block

  virtual ~Room() = default;
  // A job's life. Enter fails when not even an empty machine has room for its smallest number of
  // workers; its first grant is that number at least.
  virtual Result<int64_t> Enter(const Request& request, OnGrant on_grant) = 0;
  virtual void Leave(int64_t job) = 0;
  // Answers the bytes that the worker may use: more than was asked for after others ran out of it;
  // 0: no limit. WorkerEnded takes them back.
  virtual int64_t WorkerStarted(int64_t job) = 0;
  virtual void WorkerEnded(int64_t job, int64_t memory_bytes, bool out_of_memory) = 0;
  virtual void Report(int64_t job, uint32_t workers, double rows_per_second, double rows_left) = 0;
  // Of all its processes, and of a training inside the gateway.
  virtual int64_t memory_bytes() const = 0;
};

// Whether an empty room has place for the smallest number of workers.
Status CheckFits(const Room::Request& request, const RoomSize& size);
// What Room::WorkerStarted answers when so many workers have run out of memory.
int64_t MemoryOfWorker(const Room::Request& request, int out_of_memory, const RoomSize& size);

}  // namespace sluice::executor
