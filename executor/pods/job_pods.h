#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "executor/cluster.h"
#include "executor/jobs/job_closer.h"
#include "executor/pods/kubernetes_access.h"

namespace sluice::executor {

class JobStatus;
class MasterExit;
class MasterLease;
class PodJobConfig;

// The pods of one job, for the job's master: in its own pod, it trains on workers and parameter
// servers that it or an earlier master created.
class JobPods final : public Cluster {
 public:
  // Of this master.
  struct Place {
    int64_t term = 0;
    std::string address, node;  // its pod's
  };
  // All arguments outlive this.
  JobPods(KubernetesAccess& access, const PodJobConfig& config, JobStatus& status,
          MasterLease& lease, MasterExit& exit, Place place);

  // A job's own process starts no other jobs.
  Result<StartedJob> StartJob(Context& context, JobConfig config, JobSecrets secrets) override;
  Status Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
               const elastic::ProgressCallback& progress) override;
  // It knows only its own pods.
  Result<elastic::ClusterState> State(const std::stop_token& stop) override;
  Result<elastic::StartForecast> Forecast(const plan::TrainPlan& plan,
                                          const std::stop_token& stop) override;
  int64_t memory_bytes() const override;
  JobCloser& closer() override { return closer_; }
  std::string Describe() const override;

 private:
  bool MayWrite(const std::stop_token& stop);
  uint32_t WorkersBefore(const std::stop_token& stop);

  KubernetesAccess& access_;
  const PodJobConfig& config_;
  JobStatus& status_;
  MasterLease& lease_;
  MasterExit& exit_;
  const Place place_;
  JobCloser closer_;
};

}  // namespace sluice::executor
