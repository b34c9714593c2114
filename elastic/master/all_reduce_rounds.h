#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "elastic/queue/rendezvous.h"
#include "elastic/queue/task.h"
#include "elastic/rpc/world.h"

namespace sluice::elastic {

// The rounds of an all-reduce job: which workers train together, the lanes that all of them hold
// together, and where in the round they are. Pure; not thread-safe.
class AllReduceRounds {
 public:
  // `lanes`: of a round that was open when all its members were lost.
  explicit AllReduceRounds(const Rendezvous::Options& options, std::vector<Task> lanes = {})
      : rendezvous_(options), lanes_(std::move(lanes)) {}

  // The worker has come to regroup, from there.
  void Arrive(const Rendezvous::Arrival& arrival, RoundPosition position, TimePoint now);
  void Remove(Incarnation worker);
  struct Regrouped {
    bool new_world = false;     // with other members, or after a collective has failed
    bool begins_again = false;  // nobody is left who has the parameters
  };
  // None: somebody is still waited for.
  std::optional<Regrouped> Regroup(TimePoint now);
  // After a regroup: where the member with the newest parameters is. All members will have closed
  // the steps that it has. None: nobody has parameters.
  std::optional<RoundPosition> CloseNewest();
  // Every member has closed so many steps.
  void Closed(int64_t steps) { rendezvous_.Closed(steps); }

  void Deal(Task lane) { lanes_.push_back(std::move(lane)); }
  void EndRound() { lanes_.clear(); }
  // It is of the round that is open, and of all its lanes.
  bool IsOf(const RoundPosition& position) const;
  const std::vector<Task>& lanes() const { return lanes_; }
  // What the worker computes of a step; none: it is no member.
  std::vector<Task> LanesOfMember(Incarnation worker) const;

  const Rendezvous& rendezvous() const { return rendezvous_; }
  const Rendezvous::World& world() const { return rendezvous_.world(); }
  // Goes on from what another one had: Rendezvous::Remember and the lanes.
  void Restore(const Rendezvous::Memory& memory, std::vector<Task> lanes);

 private:
  Rendezvous rendezvous_;
  std::vector<Task> lanes_;                         // of the open round
  std::map<Incarnation, RoundPosition> positions_;  // of those who came to regroup
};

}  // namespace sluice::elastic
