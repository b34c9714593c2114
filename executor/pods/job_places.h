#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/fleet/fleet.h"

namespace sluice::executor {

// Tracks which pods of a job have a place. Parameter servers come first, since training needs the
// number that it begins with: workers are created when so many have their places, and give up
// theirs if one of them finds none. For a further server no worker has to go. Where the scheduler
// finds no room for workers, at most kMaxWaiting of them keep waiting, and the others are withdrawn
// until one of those has its place. Pods that wait for long are reported with the reason. Pure; not
// thread-safe.
class JobPlaces {
 public:
  // A server without a place is reported only after this time.
  static constexpr double kNewsSeconds = 1;
  // Changing reasons are reported at most at this interval.
  static constexpr double kAgainSeconds = 30;
  // A server that has found no place for this long gets a worker's; the next worker leaves if that
  // did not help within kNextSeconds, since a scheduler retries after 10 at the latest.
  static constexpr double kYieldSeconds = 1;
  static constexpr double kNextSeconds = 12;
  // Workers that may wait for room, so that the scheduler uses it when there is some.
  static constexpr uint32_t kMaxWaiting = 2;

  // `servers`: number that training needs, to be created before any worker; `created`: they were
  // created before. `workers`: number wanted.
  JobPlaces(uint32_t servers, uint32_t workers, bool created = false)
      : servers_(servers), workers_(workers), servers_made_(created ? servers : 0) {}

  // Sets the number of workers wanted from now on: Grant says when the job may have them.
  void Want(uint32_t workers);

  void OnMade(const std::string& name, elastic::Role role, bool placed);
  void OnPlaced(const std::string& name);
  // The pod has no place, for the given reason; `known`: the scheduler has tried.
  void OnWaits(const std::string& name, const std::string& why, bool known, TimePoint now);
  void OnGone(const std::string& name);

  bool MayMakeWorkers() const;
  uint32_t Placed(elastic::Role role) const;
  // Why the first waiting pod waits, servers first; empty: not known.
  std::string WaitsFor() const;
  // The number of workers that the job may have from now on, if it changes.
  std::optional<uint32_t> Grant(TimePoint now);
  // Workers were withdrawn because no node has room for them.
  bool crowded() const { return crowded_; }
  // Workers that wait, in the order in which they are withdrawn: the newest first.
  std::vector<std::string> WaitingWorkers() const;
  // New messages for the job's clients, each once: "parameter server job7-ps-0 waits: 0/2 nodes are
  // available: 2 Insufficient cpu."
  std::vector<std::string> News(TimePoint now);

 private:
  struct Pod {
    elastic::Role role = elastic::Role::kWorker;
    bool placed = false, known = false;
    std::string why;  // empty: not known
    TimePoint since{};
    uint64_t number = 0;  // in the order in which they were made
  };
  struct Reported {
    std::string why;
    TimePoint when{};
  };
  uint32_t Waiting(elastic::Role role, double seconds, TimePoint now) const;
  uint32_t MissingServers() const;
  std::optional<uint32_t> GrantByRoom(TimePoint now);

  const uint32_t servers_;
  uint32_t workers_;
  uint32_t servers_made_;
  bool wants_others_ = false;  // Grant has not reported it yet
  uint64_t made_ = 0;
  std::map<std::string, Pod> pods_;
  std::optional<uint32_t> granted_;  // fewer than are wanted
  TimePoint yielded_{};              // last time
  bool crowded_ = false;
  std::map<elastic::Role, Reported> reported_;
};

}  // namespace sluice::executor
