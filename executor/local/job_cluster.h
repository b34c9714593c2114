#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/training_job.h"
#include "executor/training/train_report.h"

namespace sluice::executor {

// The outcome of a training on processes, with the rows of its ledger.
struct JobEnd {
  Result<TrainReport> report;
  int64_t rows_read = 0, rows_trained = 0, rows_retried = 0, rows_skipped = 0;
};

// What a gateway does for the master of one job. JobClusterLink calls it from the master;
// JobClusterServer receives the calls.
class JobCluster {
 public:
  virtual ~JobCluster() = default;
  // All calls return Aborted if `term` is that of a master that has been succeeded.
  virtual Status Launch(elastic::Term term, const elastic::ProcessSpec& spec) = 0;
  virtual Status Stop(elastic::Term term, const std::string& name, double grace_seconds) = 0;
  virtual Status Finish(elastic::Term term, const JobEnd& end) = 0;
  // For display only: returns at once.
  virtual void Report(elastic::Term term, const elastic::Progress& progress) = 0;
  virtual void Notice(elastic::Term term, const std::string& text) = 0;
};

}  // namespace sluice::executor
