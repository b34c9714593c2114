#pragma once

#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/training_job.h"

namespace sluice::executor {

// What a gateway does for the master of one job. JobClusterLink calls it from the master;
// JobClusterServer receives the calls.
class JobCluster {
 public:
  virtual ~JobCluster() = default;
  // All calls return Aborted if `term` is that of a master that has been succeeded.
  virtual Status Launch(elastic::Term term, const elastic::ProcessSpec& spec) = 0;
  virtual Status Stop(elastic::Term term, const std::string& name, double grace_seconds) = 0;
  // `answer`: the job's (AnswerBytes), which is in the catalog with its end; or why there is none.
  virtual Status Finish(elastic::Term term, const Result<std::string>& answer) = 0;
  // For display only: returns at once.
  virtual void Report(elastic::Term term, const elastic::Progress& progress) = 0;
  virtual void Notice(elastic::Term term, const std::string& text) = 0;
};

}  // namespace sluice::executor
