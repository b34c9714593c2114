#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/fleet/forecast.h"
#include "elastic/job/training_job.h"

namespace sluice::catalog {
struct JobRunner;
}

namespace sluice::elastic {
class MetricsText;
}

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

struct Context;
class JobCloser;
class JobConfig;
class JobRecord;
class JobSecrets;
class Room;
struct StartedJob;

// Where jobs get processes from: this machine (LocalCluster), or pods (PodCluster). Thread-safe.
class Cluster {
 public:
  virtual ~Cluster() = default;

  // Starts a job that, once begun, no longer needs this process: `config` says what it runs. Makes
  // its row, unless config.row() has it. The listener reports how it goes and that it has begun; an
  // error before that is reported as its end.
  virtual Result<StartedJob> StartJob(Context& context, JobConfig config, JobSecrets secrets) = 0;
  // Runs a training on processes, as part of the job that this process has begun, until its model
  // is in the catalog, and with it the job's end (JobRecord::HasSucceeded).
  virtual Status Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                       const elastic::ProgressCallback& progress) = 0;
  // A job with that runner has ended while none of its processes ran: deletes what remains of it.
  virtual void ForgetJob(const catalog::JobRunner& /*runner*/) {}

  // The nodes, what runs on them, and the jobs that share them.
  virtual Result<elastic::ClusterState> State(const std::stop_token& stop) = 0;
  // What would become of the workers of a training on processes, if it came now.
  virtual Result<elastic::StartForecast> Forecast(const plan::TrainPlan& plan,
                                                  const std::stop_token& stop) = 0;

  // Adds what Prometheus reads about the cluster.
  virtual void AddMetrics(elastic::MetricsText& /*text*/) {}

  // Whether trainings on processes always become jobs of their own, because their processes are not
  // on this machine.
  virtual bool is_elsewhere() const { return false; }

  // Memory that one job may take on this machine.
  virtual int64_t memory_bytes() const = 0;
  // What shares this machine's memory among the trainings in this process and other jobs; null:
  // nothing else takes any.
  virtual Room* room() { return nullptr; }
  // For jobs that end while their database cannot be written.
  virtual JobCloser& closer() = 0;
  // One line for people: "pods in namespace team-a".
  virtual std::string Describe() const = 0;
};

}  // namespace sluice::executor
