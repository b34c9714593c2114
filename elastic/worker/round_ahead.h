#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "elastic/worker/lease.h"

namespace sluice::elastic {

class WorkerTasks;

// Reads the lanes that this worker will hold in the next round of an all-reduce while it trains the
// open one. The order of the shards is known in advance; if members come or go, the master deals
// other lanes to this worker, and their shards are read then. One thread.
class RoundAhead {
 public:
  explicit RoundAhead(WorkerTasks& tasks) : tasks_(tasks) {}

  // This worker holds `held` of the open round's lanes. Forgets what has been read and is not for
  // the next round.
  void Expect(const std::vector<std::unique_ptr<Lease>>& held, Rank rank, size_t members);
  // Reads on: about as many rows as have been trained since the last call. An error is nobody's
  // yet: the shard is read again when it is dealt.
  void Read(size_t trained_rows);
  // The lane with its rows, if they have been read, at least in part; else null.
  Result<std::unique_ptr<Lease>> Take(const Task& task);
  // Gives the loader back: drops the lane that has been read in part.
  void Release();

 private:
  WorkerTasks& tasks_;
  std::vector<std::unique_ptr<Lease>> read_;
  std::unique_ptr<Lease> reading_;  // null: none
  std::vector<Task> next_;          // to be read, the last one first
  size_t credit_ = 0;               // rows that may be read for the training done
};

}  // namespace sluice::elastic
