#include "elastic/staleness_bound.h"

#include <algorithm>
#include <limits>

namespace sluice::elastic {

int64_t StalenessBound::slowest() const {
  int64_t slowest = std::numeric_limits<int64_t>::max();
  for (const auto& [worker, clock] : training_) {
    slowest = std::min(slowest, clock.clock);
  }
  return slowest;
}

bool StalenessBound::MayBegin(Incarnation worker, int64_t pushed) {
  if (!training_.contains(worker)) {
    const int64_t start = training_.empty() ? 0 : slowest();
    training_.emplace(worker, Clock{start - pushed, start});
  }
  Clock& own = training_[worker];
  // A message that was repeated may come late.
  own.clock = std::max(own.clock, own.offset + pushed);
  const int64_t ahead = own.clock - slowest();
  if (ahead > bound_) {
    return false;
  }
  widest_ = std::max(widest_, ahead);
  return true;
}

}  // namespace sluice::elastic
