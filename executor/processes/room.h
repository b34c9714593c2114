#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace sluice::executor {

// The capacity of a machine for workers and servers of its jobs.
struct RoomSize {
  double slots = 0;          // processors for workers; 0: the machine's
  int64_t memory_bytes = 0;  // memory for workers and servers; 0: the machine's
};
// Replaces 0 by the machine's own capacity.
RoomSize WithMachine(RoomSize size);

// Grants workers to jobs: the SlotArbiter itself, or a RoomLink to one in another process.
// Thread-safe.
class Room {
 public:
  struct Request {
    std::string name;
    std::string owner = {};  // the role that it runs for
    uint32_t min = 1, max = 1;
    int priority = 0;
    // Per worker; servers and masters take no slot. 0: a training in its job's own process.
    double cpu = 1;
    int64_t memory_bytes = 0;  // per worker
    uint32_t servers = 0;
    int64_t server_memory_bytes = 0;  // per server
  };
  struct Grant {
    uint32_t workers = 0;     // number that may run from now on; excess workers have to leave
    uint32_t wanted = 0;      // number that will be granted once there is room
    std::string reason = {};  // for people: why it is this number
  };
  using OnGrant = std::function<void(const Grant&)>;  // called on the room's thread; must not block

  virtual ~Room() = default;
  // A job's membership. Enter fails if even an empty machine has no room for the smallest number of
  // workers; the first grant is at least that number.
  virtual Result<int64_t> Enter(const Request& request, OnGrant on_grant) = 0;
  virtual void Leave(int64_t job) = 0;
  // Returns the bytes that the worker may use: more than requested after other workers ran out of
  // memory; 0: no limit. WorkerEnded takes them back.
  virtual int64_t WorkerStarted(int64_t job) = 0;
  virtual void WorkerEnded(int64_t job, int64_t memory_bytes, bool out_of_memory) = 0;
  virtual void Report(int64_t job, uint32_t workers, double rows_per_second, double rows_left) = 0;
  // The limit for all processes, and for a training inside the gateway.
  virtual int64_t memory_bytes() const = 0;
};

// Whether an empty room can hold the smallest number of workers.
Status CheckFits(const Room::Request& request, const RoomSize& size);
// The value that Room::WorkerStarted returns when this many workers have run out of memory.
int64_t MemoryOfWorker(const Room::Request& request, int out_of_memory, const RoomSize& size);

}  // namespace sluice::executor
