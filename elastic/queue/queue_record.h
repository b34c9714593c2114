#pragma once

#include <cstdint>

#include "elastic/queue/task.h"

namespace sluice::elastic {

// One transition of a QueueState, with every decision already taken: applying it reads no clock and
// makes no choice, so that a journal of them leads any master to the same state.
struct QueueRecord {
  enum class Kind : uint8_t {
    kTake = 1,      // a task was handed out
    kProgress = 2,  // batches of a task are committed
    kFinish = 3,    // the same, and the task has ended
    kRelease = 4,   // a lease ended early: the rest of its range waits for another holder
    kExpire = 5,    // a lease has run out: another worker may take the range, until its owner
                    // returns
    kRevive = 6,    // the owner returned first
    kSplit = 7,     // a range ends earlier; the rest becomes a range of its own
    kSkip = 8,      // a range is given up
    kFailure = 9,   // code failed on a shard
    kNextEpoch = 10,
    kTerm = 11,  // another master continues from here
  };
  Kind kind = Kind::kNextEpoch;
  Incarnation owner = kNoIncarnation;  // kTake, kFailure
  ShardPosition position;              // kTake, kSplit, kSkip
  ShardId shard;                       // kFailure
  RangeId range;                       // kTake, kSplit, kSkip
  BatchIndex batch;                    // kTake: the task's last; kSplit: the new range's first
  Attempt attempt = kNoAttempt;        // kTake
  Term term = kNoTerm;                 // kTerm
  TaskReport report;                   // kProgress, kFinish: all of it; kTake to kRevive: the task
};

}  // namespace sluice::elastic
