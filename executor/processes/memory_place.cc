#include "executor/processes/memory_place.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "base/mutex.h"
#include "executor/processes/room.h"

namespace sluice::executor {
namespace {

constexpr int64_t kShareOfSmall = 64;
// A grant where there is room takes less.
constexpr std::chrono::milliseconds kMoment{300};

// Set by the room's thread, which may still do so while the waiting one gives up.
struct Granted {
  Mutex mutex;
  std::condition_variable_any changed;
  bool given GUARDED_BY(mutex) = false;
};

}  // namespace

Result<std::unique_ptr<MemoryPlace>> MemoryPlace::Take(Room& room, Request request,
                                                       const std::stop_token& stop,
                                                       const std::function<void()>& on_wait) {
  const int64_t all = room.memory_bytes();
  if (request.bytes <= all / kShareOfSmall) {
    return std::unique_ptr<MemoryPlace>();
  }
  Room::Request asked;
  asked.name = std::move(request.name);
  asked.owner = std::move(request.owner);
  asked.priority = request.priority;
  asked.cpu = 0;
  asked.memory_bytes = std::min(request.bytes, all);
  const auto granted = std::make_shared<Granted>();
  ASSIGN_OR_RETURN(const int64_t job, room.Enter(asked, [granted](const Room::Grant& grant) {
    const MutexLock lock(granted->mutex);
    granted->given = grant.workers > 0;
    granted->changed.notify_all();
  }));
  std::unique_ptr<MemoryPlace> place(new MemoryPlace(room, job));
  {
    MutexLock lock(granted->mutex);
    const auto given = [&granted]() REQUIRES(granted->mutex) { return granted->given; };
    if (!granted->changed.wait_for(lock.native(), stop, kMoment, given)) {
      lock.native().unlock();
      on_wait();
      lock.native().lock();
      granted->changed.wait(lock.native(), stop, given);
    }
    if (!granted->given) {
      return Cancelled("cancelled while the training waited for memory");
    }
  }
  place->taken_ = room.WorkerStarted(job);
  return place;
}

MemoryPlace::~MemoryPlace() {
  if (taken_ > 0) {
    room_.WorkerEnded(job_, taken_, false);
  }
  malloc_trim(0);  // what the training had is not kept from others
  room_.Leave(job_);
}

}  // namespace sluice::executor
