#include "elastic/queue/membership.h"

#include <algorithm>

namespace sluice::elastic {

Incarnation Membership::Expect(const std::string& name, TimePoint now) {
  const Incarnation incarnation = next_++;
  workers_[incarnation] = {name, incarnation, false, false, now};
  return incarnation;
}

void Membership::Restore(Incarnation next, const std::vector<Worker>& workers) {
  next_ = next;
  workers_.clear();
  for (const Worker& worker : workers) {
    workers_[worker.incarnation] = worker;
  }
}

bool Membership::Contact(Incarnation incarnation, TimePoint now) {
  const auto found = workers_.find(incarnation);
  if (found == workers_.end()) {
    return false;
  }
  found->second.joined = true;
  found->second.last_contact = now;
  return true;
}

bool Membership::Committed(Incarnation incarnation) {
  const auto found = workers_.find(incarnation);
  return found != workers_.end() && !std::exchange(found->second.committed, true);
}

std::optional<Membership::Worker> Membership::Remove(Incarnation incarnation) {
  const auto found = workers_.find(incarnation);
  if (found == workers_.end()) {
    return std::nullopt;
  }
  Worker worker = found->second;
  workers_.erase(found);
  return worker;
}

std::optional<Incarnation> Membership::Find(const std::string& name) const {
  for (const auto& [incarnation, worker] : workers_) {
    if (worker.name == name) {
      return incarnation;
    }
  }
  return std::nullopt;
}

std::vector<Membership::Worker> Membership::Silent(TimePoint now) const {
  std::vector<Worker> silent;
  for (const auto& [incarnation, worker] : workers_) {
    // A process that is still starting is watched by the fleet, not by the clock.
    if (worker.joined && SecondsBetween(worker.last_contact, now) >= silence_seconds_) {
      silent.push_back(worker);
    }
  }
  return silent;
}

size_t Membership::joined() const {
  return static_cast<size_t>(std::count_if(workers_.begin(), workers_.end(),
                                           [](const auto& w) { return w.second.joined; }));
}

}  // namespace sluice::elastic
