#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/parameters/placement.h"
#include "elastic/queue/queue_record.h"
#include "elastic/queue/task_queue.h"

namespace sluice::elastic {

class MasterSave;

// Turns the changes of a master's state into the entries of its journal: the queue's transitions,
// the rest of the master's state if it has changed, and the placement of the parameters if it has.
// From time to time an entry has everything, so that a replay stays short. Pure; not thread-safe.
class JournalWriter {
 public:
  // After this many transitions the next entry has everything.
  static constexpr int64_t kMaxTransitions = 100'000;

  // Part of the next entry, and of what a replay restores.
  void SetPlacement(const Placement& placement);
  const Placement& placement() const { return placement_; }
  // The same, after all that a search has remembered before.
  void Remember(std::string what) { remembered_.push_back(std::move(what)); }
  const std::vector<std::string>& remembered() const { return remembered_; }
  // The next entry has everything: the queue was replaced.
  void StartOver() { written_.clear(); }

  // The next entry; empty: nothing has changed. `transitions`: of the queue, since the last entry.
  // `anew`: the entry has everything, so earlier ones are superfluous. ResourceExhausted: it is
  // larger than an entry may be.
  Result<std::string> Write(const std::vector<QueueRecord>& transitions, const TaskQueue& queue,
                            const MasterSave& state, bool* anew);

  // Applies entries to `queue` in order, keeps the last placement, and sets `state` to the last
  // one. False: none of them has a state.
  Result<bool> Replay(const QueueOptions& options, const std::vector<std::string>& entries,
                      TimePoint now, TaskQueue* queue, MasterSave* state);

 private:
  Placement placement_;
  bool placement_changed_ = false;
  std::vector<std::string> remembered_;
  size_t remembered_written_ = 0;  // of them, in entries
  std::string written_;            // the master's state in the last entry; empty: everything is due
  int64_t transitions_ = 0;        // since the last entry that has everything
};

}  // namespace sluice::elastic
