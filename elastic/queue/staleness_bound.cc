#include "elastic/queue/staleness_bound.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::elastic {

int64_t StalenessBound::slowest() const {
  int64_t slowest = std::numeric_limits<int64_t>::max();
  for (const auto& [worker, clock] : training_) {
    slowest = std::min(slowest, clock.clock);
  }
  return slowest;
}

std::map<Incarnation, int64_t> StalenessBound::Offsets() const {
  std::map<Incarnation, int64_t> offsets = unheard_;
  for (const auto& [worker, clock] : training_) {
    offsets[worker] = clock.offset;
  }
  return offsets;
}

bool StalenessBound::MayBegin(Incarnation worker, int64_t pushed) {
  if (const auto awaited = unheard_.find(worker); awaited != unheard_.end()) {
    training_[worker] = {awaited->second, awaited->second + pushed};
    unheard_.erase(awaited);
  }
  if (!unheard_.empty()) {
    return false;
  }
  if (!training_.contains(worker)) {
    const int64_t start = training_.empty() ? 0 : slowest();
    training_.emplace(worker, Clock{start - pushed, start});
    ++begun_;
  }
  Clock& own = training_[worker];
  // A repeated message may arrive late.
  const int64_t before = std::exchange(own.clock, std::max(own.clock, own.offset + pushed));
  const int64_t ahead = own.clock - slowest();
  if (own.clock > before) {
    // Measured by what it has done, not by what it was allowed: its last batch began one batch
    // earlier.
    widest_ = std::max(widest_, ahead - 1);
  }
  return ahead <= bound_;
}

}  // namespace sluice::elastic
