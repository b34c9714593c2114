#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "elastic/queue/task.h"

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
  void Rest(Incarnation worker) {
    training_.erase(worker);
    unheard_.erase(worker);
  }

  // What another master needs to go on: by how much the clock of each worker that trains differs
  // from its own count. Changes only when a worker begins to train, which `begun` counts, or rests.
  std::map<Incarnation, int64_t> Offsets() const;
  int64_t begun() const { return begun_; }
  // Such workers may be anywhere: nobody begins a batch before each has said where it is, or rests.
  void Await(const std::map<Incarnation, int64_t>& offsets) { unheard_ = offsets; }

  // Changes when somebody may begin who might not before.
  std::pair<int64_t, size_t> state() const { return {slowest(), unheard_.size()}; }
  size_t training() const { return training_.size(); }
  // The most batches that a worker that was let go on had pushed more than the slowest.
  int64_t widest() const { return widest_; }

 private:
  int64_t slowest() const;

  struct Clock {
    int64_t offset = 0;  // of the worker's own count
    int64_t clock = 0;
  };
  const int64_t bound_;
  std::map<Incarnation, Clock> training_;
  std::map<Incarnation, int64_t> unheard_;
  int64_t begun_ = 0;
  int64_t widest_ = 0;
};

}  // namespace sluice::elastic
