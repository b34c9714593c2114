#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "k8s/known_objects.h"
#include "k8s/object.h"
#include "k8s/training_job_status.h"

namespace sluice::k8s {

// The reason of the condition Queued, and the Event, of a TrainingJob that no gateway has taken.
inline constexpr char kNoGateway[] = "NoGateway";

// Whether a gateway has taken it, or a statement has made it.
bool IsAttended(const Object& training_job, const TrainingJobStatus& status);

// The TrainingJobs of a cluster that no gateway takes, since their namespace has none, or none that
// runs: nobody else would say so. Pure; one thread.
class UnattendedJobs {
 public:
  // A gateway that runs claims a new one at once, and has so long to do it.
  static constexpr double kPatienceSeconds = 10;

  struct Job {
    std::string namespace_name, name, uid;
  };
  void OnTrainingJob(const ObjectChange& change, TimePoint now);
  // Those that are to be told now, at most so many. They come again after kPatienceSeconds, unless
  // they have been told by then.
  std::vector<Job> TakeDue(TimePoint now, size_t most);

 private:
  struct Known {
    Job job;
    TimePoint due{};
  };
  std::map<std::string, Known> known_;  // unattended and not told, by uid
};

}  // namespace sluice::k8s
