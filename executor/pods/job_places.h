#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/fleet/fleet.h"

namespace sluice::executor {

// Which pods of a job have a place. Parameter servers come first, as nothing is trained without all
// of them: workers are made when each server has its place, and give theirs up where a server finds
// none. Whoever waits for long is told of, with the reason. Pure; not thread-safe.
class JobPlaces {
 public:
  // A server that has no place yet is no news before.
  static constexpr double kNewsSeconds = 3;
  // Reasons that change again and again are told so often.
  static constexpr double kAgainSeconds = 30;
  // A server that has found no place for so long gets a worker's; the next one goes when that was
  // of no use for kNextSeconds, as a scheduler looks again after 10 at the latest.
  static constexpr double kGiveWaySeconds = 1;
  static constexpr double kNextSeconds = 12;

  // `servers`: so many are made first, whatever is asked for before. `workers`: wanted.
  JobPlaces(uint32_t servers, uint32_t workers) : servers_(servers), workers_(workers) {}

  // From now on so many workers are wanted: Grant says when the job is to have them.
  void Want(uint32_t workers);

  void OnMade(const std::string& name, elastic::Role role, bool placed);
  void OnPlaced(const std::string& name);
  // It has no place, and why; `known`: somebody has looked for one.
  void OnWaits(const std::string& name, const std::string& why, bool known, TimePoint now);
  void OnGone(const std::string& name);

  bool MayMakeWorkers() const;
  uint32_t Placed(elastic::Role role) const;
  // Why the first of them waits, servers first; empty: nobody has said so.
  std::string WaitsFor() const;
  // How many workers the job may have from now on, where that is to change.
  std::optional<uint32_t> Grant(TimePoint now);
  // What whoever waits for the job should know now, each once: "parameter server job7-ps-0 waits:
  // 0/2 nodes are available: 2 Insufficient cpu."
  std::vector<std::string> News(TimePoint now);

 private:
  struct Pod {
    elastic::Role role = elastic::Role::kWorker;
    bool placed = false, known = false;
    std::string why;  // empty: nobody has said so
    TimePoint since{};
  };
  struct Told {
    std::string why;
    TimePoint when{};
  };
  uint32_t Waiting(elastic::Role role, double seconds, TimePoint now) const;

  const uint32_t servers_;
  uint32_t workers_;
  bool wants_others_ = false;  // Grant has not said so yet
  uint32_t servers_made_ = 0;
  std::map<std::string, Pod> pods_;
  std::optional<uint32_t> granted_;  // fewer than are wanted
  TimePoint gave_way_{};             // last
  std::map<elastic::Role, Told> told_;
};

}  // namespace sluice::executor
