#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/profile.h"
#include "elastic/fleet/server_scaling.h"
#include "elastic/master/progress.h"

namespace sluice::elastic {

class ParameterFleet;

// Makes a job's parameter servers follow its workers, from its progress and the workers' times
// (fleet/server_scaling.h). A master that takes over starts with the number that it finds. Not
// thread-safe.
class ServerFollower {
 public:
  using OnChange = std::function<void(const std::string& detail)>;
  ServerFollower(ParameterFleet& servers, uint32_t least, uint32_t most, OnChange on_change);

  // `times`: of all workers, so far. Called once a second; a call between counts with the next.
  void OnProgress(const Progress& progress, const Profile& times, TimePoint now);

 private:
  ParameterFleet& servers_;
  const uint32_t least_, most_;
  const OnChange on_change_;
  ServerScaling scaling_;
  TimePoint looked_{};
  double exchange_ = 0, total_ = 0;  // of the last call
};

}  // namespace sluice::elastic
