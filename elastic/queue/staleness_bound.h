#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "elastic/queue/task.h"

namespace sluice::elastic {

// Bounded staleness (stale synchronous parallel, Ho et al. 2013): no worker begins a batch that is
// more than `bound` batches ahead of the slowest worker, so that the values from which a batch is
// computed lack at most that many batches of each other worker. A worker's clock is the number of
// batches that it has pushed; one that begins to train, or returns, starts at the clock of the
// slowest. Idle and lost workers are not waited for. Pure; not thread-safe.
class StalenessBound {
 public:
  explicit StalenessBound(int64_t bound) : bound_(bound) {}

  // The worker, which is alive and has pushed `pushed` batches since its start, wants to begin
  // another. False: not before the slowest has caught up.
  bool MayBegin(Incarnation worker, int64_t pushed);
  // It has no task, or is lost.
  void Rest(Incarnation worker) {
    training_.erase(worker);
    unheard_.erase(worker);
  }

  // The state that another master needs to continue: the difference between the clock of each
  // training worker and its own count. Changes only when a worker begins to train, which `begun`
  // counts, or rests.
  std::map<Incarnation, int64_t> Offsets() const;
  int64_t begun() const { return begun_; }
  // The positions of these workers are unknown: no worker begins a batch before each of them has
  // reported its own, or rests.
  void Await(const std::map<Incarnation, int64_t>& offsets) { unheard_ = offsets; }

  // Changes when a worker that had to wait may begin.
  std::pair<int64_t, size_t> state() const { return {slowest(), unheard_.size()}; }
  size_t training() const { return training_.size(); }
  // The largest lead over the slowest worker, in batches, that a worker was allowed.
  int64_t widest() const { return widest_; }

 private:
  int64_t slowest() const;

  struct Clock {
    int64_t offset = 0;  // added to the worker's own count
    int64_t clock = 0;
  };
  const int64_t bound_;
  std::map<Incarnation, Clock> training_;
  std::map<Incarnation, int64_t> unheard_;
  int64_t begun_ = 0;
  int64_t widest_ = 0;
};

}  // namespace sluice::elastic
