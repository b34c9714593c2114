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

// The rounds of an all-reduce job: which workers train together, the lanes that they hold together,
// and their position in the round. Pure; not thread-safe.
class AllReduceRounds {
 public:
  // `lanes`: those of a round that was open when all its members were lost.
  explicit AllReduceRounds(const Rendezvous::Options& options, std::vector<Task> lanes = {})
      : rendezvous_(options), lanes_(std::move(lanes)) {}

  // The worker has come to regroup, from that position.
  void Arrive(const Rendezvous::Arrival& arrival, RoundPosition position, TimePoint now);
  void Remove(Incarnation worker);
  struct Regrouped {
    bool new_world = false;     // with other members, or after a collective has failed
    bool begins_again = false;  // no member with the parameters is left
  };
  // Nullopt: some worker is still awaited.
  std::optional<Regrouped> Regroup(TimePoint now);
  // After a regroup: the position of the member with the newest parameters. All members will have
  // closed the steps that it has. Nullopt: no member has parameters.
  std::optional<RoundPosition> CloseNewest();
  // Every member has closed this many steps.
  void Closed(int64_t steps) { rendezvous_.Closed(steps); }

  void Deal(Task lane) { lanes_.push_back(std::move(lane)); }
  void EndRound() { lanes_.clear(); }
  // Whether it belongs to the open round, and to all its lanes.
  bool IsOf(const RoundPosition& position) const;
  const std::vector<Task>& lanes() const { return lanes_; }
  // The lanes that the worker computes in a step; empty: it is not a member.
  std::vector<Task> LanesOfMember(Incarnation worker) const;

  const Rendezvous& rendezvous() const { return rendezvous_; }
  const Rendezvous::World& world() const { return rendezvous_.world(); }
  // Continues from another one's state: Rendezvous::Remember and the lanes.
  void Restore(const Rendezvous::Memory& memory, std::vector<Task> lanes);

 private:
  Rendezvous rendezvous_;
  std::vector<Task> lanes_;                         // of the open round
  std::map<Incarnation, RoundPosition> positions_;  // of the members that came to regroup
};

}  // namespace sluice::elastic
