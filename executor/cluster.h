#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/job/training_job.h"
#include "executor/train.h"

namespace sluice::catalog {
struct JobRunner;
}

namespace sluice::elastic {
class MetricsText;
}

namespace sluice::executor {

struct Context;
class JobCloser;
class JobConfig;
class JobListener;
class JobRecord;
class JobSecrets;

// Where jobs get processes from: this machine (LocalCluster), or pods (PodCluster). Thread-safe.
class Cluster {
 public:
  virtual ~Cluster() = default;

  // A job that does not need this process any more once it has begun: `config` says what it runs.
  // The answer tells how it goes, and that it has begun; what is wrong before is its end.
  virtual Result<std::unique_ptr<JobListener>> StartJob(Context& context, JobConfig config,
                                                        const JobSecrets& secrets) = 0;
  // Runs a training on processes, as a part of the job that this process has begun, until its model
  // is in the catalog.
  virtual Result<TrainReport> Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                    const elastic::ProgressCallback& progress) = 0;
  // A job of that runner has ended while nothing of it ran: what there is for it goes.
  virtual void ForgetJob(const catalog::JobRunner& /*runner*/) {}

  // What Prometheus reads of it.
  virtual void AddMetrics(elastic::MetricsText& /*text*/) {}

  // Trainings on processes are jobs of their own, whoever begins them: their processes are not on
  // this machine.
  virtual bool is_elsewhere() const { return false; }

  // What one job may take of this machine.
  virtual int64_t memory_bytes() const = 0;
  // For the jobs that end while their database takes nothing.
  virtual JobCloser& closer() = 0;
  // One line for people: "pods in namespace team-a".
  virtual std::string Describe() const = 0;
};

}  // namespace sluice::executor
