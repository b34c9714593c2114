#pragma once

#include <cstdint>
#include <map>

#include "elastic/task.h"

namespace sluice::elastic {

// Bounded staleness (stale synchronous parallel, Ho et al. 2013): nobody begins a batch that is
// more than `bound` batches ahead of the slowest worker, so that the values that a batch is
// computed from lack at most so many batches of each other worker. A worker's clock is the number
// of batches that it has pushed; one that begins to train, or comes back, starts at the clock of
// the slowest. Who has nothing to train and who is lost is not waited for. Pure; not thread-safe.
class StalenessBound {
 public:
  explicit StalenessBound(int64_t bound) : bound_(bound) {}

  // The worker, alive, has pushed `pushed` batches since its start, and wants to begin another.
  // False: not before the slowest has caught up.
  bool MayBegin(Incarnation worker, int64_t pushed);
  // It has nothing to train, or is lost.
  void Rest(Incarnation worker) { training_.erase(worker); }

  // Changes when somebody may begin who might not before.
  int64_t slowest() const;
  size_t training() const { return training_.size(); }
  // The most batches that a worker that was let go on had pushed more than the slowest.
  int64_t widest() const { return widest_; }

 private:
  struct Clock {
    int64_t offset = 0;  // of the worker's own count
    int64_t clock = 0;
  };
  const int64_t bound_;
  std::map<Incarnation, Clock> training_;
  int64_t widest_ = 0;
};

}  // namespace sluice::elastic
