#include "elastic/queue/work_stealing.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/median.h"

namespace sluice::elastic {
namespace {

// The tasks from which the usual duration is computed.
constexpr size_t kRememberedSeconds = 64;

// Keeps the last ones.
void Remember(double seconds, std::deque<double>* last) {
  last->push_back(seconds);
  if (last->size() > kRememberedSeconds) {
    last->pop_front();
  }
}

// 0: of none.
double MedianOrZero(const std::deque<double>& seconds) {
  return seconds.empty() ? 0 : MedianOf(std::vector<double>(seconds.begin(), seconds.end()));
}

}  // namespace

void TaskTimes::Finished(double seconds, const TaskReport& report) {
  Remember(seconds, &seconds_);
  if (report.rows_read > 0) {
    Remember(report.read_seconds, &reads_);
  }
}

double TaskTimes::UsualSeconds() const {
  return MedianOrZero(seconds_);
}

double TaskTimes::UsualReadSeconds() const {
  return MedianOrZero(reads_);
}

std::optional<TaskId> LaggingLane(const QueueState& state, Incarnation thief, TimePoint now) {
  std::optional<TaskId> lagging;
  BatchIndex next;
  for (const auto& [id, lease] : state.leases()) {
    if (lease.owner == thief || lease.expired) {
      continue;
    }
    const QueueState::Range& range = state.ranges().at(lease.key);
    if (SecondsBetween(lease.progress, now) < kStallSeconds || range.holders.size() > 1) {
      continue;
    }
    if (!lagging.has_value() || range.next < next || (range.next == next && id < *lagging)) {
      lagging = id;
      next = range.next;
    }
  }
  return lagging;
}

std::optional<Theft> ChooseTheft(const QueueState& state, Incarnation thief, const TaskTimes& times,
                                 TimePoint now) {
  const double late = kLateFactor * times.UsualSeconds();
  const double reading = times.UsualReadSeconds();
  std::optional<Theft> best;
  double longest = 0;
  for (const auto& [id, lease] : state.leases()) {
    const QueueState::Range& range = state.ranges().at(lease.key);
    // A shard on which code has failed is tried by one worker at a time.
    const bool suspect = state.failures().contains(lease.task.shard);
    if (lease.owner == thief || lease.expired || suspect || range.holders.size() > 1) {
      continue;
    }
    const double elapsed = SecondsBetween(lease.since, now);
    const int64_t trained = range.next - lease.task.first_batch;
    const int64_t left = std::min(range.last, EndOf(range.batches)) - range.next;
    // Nothing committed yet: at least as long again as it has taken so far.
    const double training = std::max(0.0, elapsed - lease.last_report.read_seconds);
    const double seconds = trained > 0 && left > 0
                               ? training * static_cast<double>(left) / static_cast<double>(trained)
                               : elapsed;
    const bool can_split = trained > 0 && left >= kBatchesToSplit && seconds >= kSecondsToSplit &&
                           seconds / 2 > reading &&
                           SecondsBetween(lease.progress, now) < kStallSeconds;
    const bool can_race =
        !times.empty() && elapsed >= late && seconds >= kSecondsToSplit && seconds > reading;
    if ((can_split || can_race) && (!best.has_value() || seconds > longest ||
                                    (seconds == longest && lease.task.id < best->task))) {
      best = Theft{lease.task.id, can_split};
      longest = seconds;
    }
  }
  return best;
}

}  // namespace sluice::elastic
