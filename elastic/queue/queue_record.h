#pragma once

#include <cstdint>

#include "elastic/queue/task.h"

namespace sluice::elastic {

// One transition of a QueueState, with every decision in it already taken: applying it asks no
// clock and has no choice, so that a journal of them leads any master to the same state.
struct QueueRecord {
  enum class Kind : uint8_t {
    kTake = 1,      // a task was handed out
    kProgress = 2,  // batches of a task are committed
    kFinish = 3,    // the same, and the task has ended
    kRelease = 4,   // a lease ended without more: the rest of its range waits for another holder
    kExpire = 5,    // a lease has run out: others may have the range, until its owner comes back
    kRevive = 6,    // it came back first
    kSplit = 7,     // a range ends earlier; what is left of it is a range of its own
    kSkip = 8,      // a range is given up
    kFailure = 9,   // code failed on a shard
    kNextEpoch = 10,
    kTerm = 11,  // another master goes on from here
  };
  Kind kind = Kind::kNextEpoch;
  Incarnation owner = kNobody;  // kTake, kFailure
  ShardPosition position;       // kTake, kSplit, kSkip
  ShardId shard;                // kFailure
  RangeId range;                // kTake, kSplit, kSkip
  BatchIndex batch;             // kTake: the task's last; kSplit: the new range's first
  uint32_t attempt = 0;         // kTake
  Term term = kNoTerm;          // kTerm
  TaskReport said;              // kProgress, kFinish: all of it; kTake to kRevive: the task
};

}  // namespace sluice::elastic
