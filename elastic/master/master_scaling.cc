#include <algorithm>
#include <tuple>

#include "elastic/master/master.h"

// How a job grows and shrinks while it runs.
namespace sluice::elastic {

size_t Master::Staying() const {
  return members_.size() - drained_.size() + later_starts_.size();
}

void Master::Scale(uint32_t workers, TimePoint now) {
  if (finished()) {
    return;
  }
  wanted_ = workers;
  if (!fleet_) {
    return;  // Start begins with so many
  }
  while (Staying() > workers && !later_starts_.empty()) {
    later_starts_.pop_back();
  }
  if (Staying() > workers) {
    Drain(Staying() - workers);
  }
  while (Staying() < workers) {
    StartWorker(now);
  }
}

// Who disturbs least: who has not joined, then who has trained nothing yet, then the youngest.
void Master::Drain(size_t count) {
  std::vector<const Membership::Worker*> staying;
  for (const auto& [incarnation, worker] : members_.workers()) {
    if (!drained_.contains(incarnation)) {
      staying.push_back(&worker);
    }
  }
  const auto order = [](const Membership::Worker* worker) {
    return std::tuple(worker->joined, worker->committed,
                      -static_cast<int64_t>(worker->incarnation));
  };
  std::sort(staying.begin(), staying.end(),
            [&](const auto* a, const auto* b) { return order(a) < order(b); });
  staying.resize(std::min(staying.size(), count));
  for (const Membership::Worker* worker : staying) {
    drained_.insert(worker->incarnation);
    actions_.push_back({Action::Kind::kDrainWorker, worker->name, worker->incarnation});
    AddEvent("worker_drained", worker->name);
  }
}

}  // namespace sluice::elastic
