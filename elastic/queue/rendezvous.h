#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/ids.h"
#include "elastic/queue/task.h"

namespace sluice::elastic {

// Which workers add their gradients together. A world is a numbered list of members; it changes
// only when its members regroup: when a step has closed or a collective has failed. A pure state
// machine; not thread-safe.
class Rendezvous {
 public:
  // A worker that has no parameters yet.
  static constexpr int64_t kNoState = -1;

  struct Options {
    uint32_t min_members = 1;  // with fewer, all wait
    uint32_t max_members = std::numeric_limits<uint32_t>::max();
    // The first world waits for this many members, but at most for `gather_seconds`.
    uint32_t expected_members = 1;
    double gather_seconds = 30;
    // After a failed collective a member that does not come for this long is left behind (it may be
    // computing); at once if another one has found it silent. It may come back as a new worker.
    double regroup_seconds = 3;
  };
  struct Member {
    Incarnation incarnation = kNoIncarnation;
    std::string address;
    int64_t closed = kNoState;  // the steps that it has closed
    bool operator==(const Member&) const = default;
  };
  struct World {
    WorldId id = kNoWorld;  // kNoWorld: there has been none
    // Grows with every regroup, also when the members stay the same.
    Generation generation = kNoGeneration;
    std::vector<Member> members;  // oldest first: the place is the rank
    Rank source = Rank::First();  // a rank with the largest `closed`: it has the newest parameters
    int64_t closed = kNoState;    // the source's
    // Grows when no member with the parameters is left, and training begins again.
    int64_t beginning = 0;
  };

  explicit Rendezvous(const Options& options) : options_(options) {}

  struct Arrival {
    Incarnation incarnation = kNoIncarnation;
    std::string address;
    int64_t closed = kNoState;
    int64_t beginning = 0;                  // to which its parameters belong
    Generation generation = kNoGeneration;  // the last one whose outcome it received
    WorldId world = kNoWorld;               // the last world that it tried to enter
    bool failed = false;                    // and could not, or left in the middle of a step
    Incarnation silent = kNoIncarnation;    // the member that was found silent
  };
  // The worker has come to regroup and waits. Repeating the call changes nothing.
  void Arrive(const Arrival& arrival, TimePoint now);
  // The process has ended or is leaving.
  void Remove(Incarnation incarnation);
  // Regroups if all awaited workers are here. True: world() is in force from now on, and its
  // members may go.
  bool Regroup(TimePoint now);
  // The worker may go: it is in world(), and has not come back from it.
  bool MayGo(Incarnation incarnation) const;

  const World& world() const { return world_; }
  std::optional<Rank> RankOf(Incarnation incarnation) const;
  // A worker waits that a regroup would admit: the members are to regroup when the step closes.
  bool ShouldRegroup() const;
  // The state that another master needs to continue.
  struct Known {
    Member member;
    WorldId tried = kNoWorld;
    int64_t may_have = kNoState;
  };
  struct Memory {
    World world;
    int64_t committed = kNoState;
    std::vector<Known> workers;
  };
  Memory Remember() const;
  // No worker is waiting then: those that were will come again.
  void Restore(const Memory& memory);

  // Every member of the world has closed this many steps: later worlds need a member that has, too.
  void Closed(int64_t steps) { committed_ = std::max(committed_, steps); }

 private:
  struct Worker {
    Member member;
    WorldId tried = kNoWorld;  // the last world that it tried to enter
    bool here = false;         // waits to regroup
    // Upper limit of the steps that it has closed, as far as known; unlimited while it is in the
    // world.
    int64_t may_have = kNoState;
    bool failed = false;
  };
  bool WaitsForMembers(TimePoint now);
  bool NewestMayCome() const;
  bool MayHaveNewest(const Worker& worker) const;
  // The workers that would be admitted now, oldest first.
  std::vector<Incarnation> Candidates(bool with_members) const;
  void Form(const std::vector<Incarnation>& chosen);

  const Options options_;
  World world_;
  int64_t committed_ = kNoState;
  std::map<Incarnation, Worker> workers_;  // in order of age
  std::optional<TimePoint> first_here_;    // before the first world
  std::optional<TimePoint> first_failure_;
  std::set<Incarnation> silent_;  // members of the world
};

}  // namespace sluice::elastic
