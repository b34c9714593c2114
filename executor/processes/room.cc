#include "executor/processes/room.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/machine.h"
#include "elastic/fleet/autoscaler.h"

namespace sluice::executor {
namespace {

std::string Mebibytes(int64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

RoomSize WithMachine(RoomSize size) {
  if (size.slots <= 0) {
    size.slots = MachineProcessors();
  }
  if (size.memory_bytes <= 0) {
    size.memory_bytes = MachineMemory();
  }
  return size;
}

Status CheckFits(const Room::Request& request, const RoomSize& size) {
  if (request.min == 0 || request.max < request.min) {
    return InvalidArgument(
        fmt::format("a job of {} to {} workers: it needs one at least", request.min, request.max));
  }
  if (request.cpu * request.min > size.slots) {
    return InvalidArgument(fmt::format("{} workers of {} processors are more than the {} slots "
                                       "that this gateway has",
                                       request.min, request.cpu, size.slots))
        .Hint("lower engine.min_workers or engine.cpu, or start the gateway with more --slots");
  }
  const double needed = static_cast<double>(request.memory_bytes) * request.min +
                        static_cast<double>(request.server_memory_bytes) * request.servers;
  if (needed > static_cast<double>(size.memory_bytes)) {
    std::string processes =
        fmt::format("{} workers of {}", request.min, Mebibytes(request.memory_bytes));
    if (request.servers > 0) {
      processes += fmt::format(" and {} parameter servers of {}", request.servers,
                               Mebibytes(request.server_memory_bytes));
    }
    return InvalidArgument(fmt::format("{} are more than the {} that this gateway has", processes,
                                       Mebibytes(size.memory_bytes)))
        .Hint(
            "lower engine.memory, engine.min_workers or engine.num_ps, or start the gateway with a "
            "larger --memory-limit");
  }
  return OkStatus();
}

int64_t MemoryOfWorker(const Room::Request& request, int out_of_memory, const RoomSize& size) {
  elastic::ClusterJob job;
  job.worker = {request.cpu, request.memory_bytes, 0};
  job.out_of_memory = out_of_memory;
  return elastic::RequestOf(job, {{"this machine", {size.slots, size.memory_bytes, 0}, false}})
      .memory_bytes;
}

}  // namespace sluice::executor
