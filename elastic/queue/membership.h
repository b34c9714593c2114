#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/queue/task.h"

namespace sluice::elastic {

// Which workers a job has. Every started process has an incarnation of its own; messages of one
// that has been given up are ignored forever, even if it was only asleep. Pure; not thread-safe.
class Membership {
 public:
  struct Worker {
    std::string name;
    Incarnation incarnation = kNoIncarnation;
    bool joined = false;     // it has sent a message
    bool committed = false;  // it has trained at least one batch
    TimePoint last_contact{};
  };

  // `silence_seconds`: a worker that has joined and is silent for this long is lost.
  explicit Membership(double silence_seconds) : silence_seconds_(silence_seconds) {}

  // A worker is about to start.
  Incarnation Expect(const std::string& name, TimePoint now);
  // A message has arrived. False: from an unknown or removed worker.
  bool Contact(Incarnation incarnation, TimePoint now);
  // Its work has been committed. True the first time.
  bool Committed(Incarnation incarnation);
  // It has ended, or has been given up. Returns its entry.
  std::optional<Worker> Remove(Incarnation incarnation);
  std::optional<Incarnation> Find(const std::string& name) const;
  // Workers that have been silent for too long.
  std::vector<Worker> Silent(TimePoint now) const;

  // For a master that continues from another's state.
  Incarnation next() const { return next_; }
  void Restore(Incarnation next, const std::vector<Worker>& workers);

  size_t size() const { return workers_.size(); }
  size_t joined() const;
  const std::map<Incarnation, Worker>& workers() const { return workers_; }

 private:
  const double silence_seconds_;
  Incarnation next_ = Incarnation::First();
  std::map<Incarnation, Worker> workers_;
};

}  // namespace sluice::elastic
