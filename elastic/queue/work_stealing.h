#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"
#include "elastic/ids.h"
#include "elastic/queue/queue_state.h"
#include "elastic/queue/task.h"

// Whose work an idle worker had better take, when there is no other. Pure.
namespace sluice::elastic {

// How long the last tasks took: what is usual in this job. Not journaled.
class TaskTimes {
 public:
  // A task took `seconds` from when it was handed out until its end was reported.
  void Finished(double seconds, const TaskReport& report);
  // 0: none has finished yet.
  double UsualSeconds() const;
  // To read a task's rows; 0: none has been read yet.
  double UsualReadSeconds() const;
  bool empty() const { return seconds_.empty(); }

 private:
  std::deque<double> seconds_;
  std::deque<double> reads_;  // and how long reading their rows took
};

// A task is late after this many times the usual duration.
inline constexpr double kLateFactor = 1.5;
// A task without progress for this long stands still: in synchronous mode the step waits for it.
inline constexpr double kStallSeconds = 1;
// Less than this is not worth another task.
inline constexpr int64_t kBatchesToSplit = 4;
inline constexpr double kSecondsToSplit = 0.3;

struct Theft {
  TaskId task;         // another worker's
  bool split = false;  // its second half becomes a range of its own; otherwise both do all of it
};
// Asynchronous mode: the task with the longest remaining time, judged by its holder's progress so
// far, of those that can be split or are late, if the thief, who has to read all the shard's rows
// first, is then still of use. No task that two workers have already; nullopt: none.
std::optional<Theft> ChooseTheft(const QueueState& state, Incarnation thief, const TaskTimes& times,
                                 TimePoint now);
// Synchronous mode: the lane for which the open step waits, that is the one with the least progress
// when nothing moves; nullopt: none of another worker's.
std::optional<TaskId> LaggingLane(const QueueState& state, Incarnation thief, TimePoint now);

}  // namespace sluice::elastic
