#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "executor/cluster.h"
#include "executor/pods/job_keeper.h"
#include "executor/pods/kubernetes_access.h"
#include "executor/pods/training_jobs.h"

namespace sluice::plan {
class Pods;
class Strategy;
}  // namespace sluice::plan

namespace sluice::executor {

// Trainings on processes as pods: each is a job of its own, whose master makes its workers and
// parameter servers. What this process does for them is to keep their masters running (JobKeeper);
// they go on without it, and with the next one. All else runs where `here` runs it. Thread-safe.
class PodCluster final : public Cluster {
 public:
  struct Options {
    std::string namespace_name;  // empty: our own
    std::string image;           // of all pods
    std::string template_json;   // k8s::PodShape
    std::string priority_class;
    // With which jobs that get no further master are closed: a gateway's own database, where it
    // has gone on with jobs that one before it has begun.
    std::string catalog_url;
    bool on_this_machine = false;  // what "localhost" means here, it means in a pod
    // Begins what TrainingJobs ask for that somebody else has made; none: nothing is done for them.
    std::function<Result<int64_t>(Cluster& cluster, const TrainingJobRequest& request)> begin = {};
  };
  // Asks the API server what jobs there are, and goes on with them.
  static Result<std::unique_ptr<PodCluster>> Start(std::unique_ptr<KubernetesAccess> access,
                                                   Options options, std::unique_ptr<Cluster> here);

  Result<std::unique_ptr<JobListener>> StartJob(Context& context, JobConfig config,
                                                const JobSecrets& secrets) override;
  // Of what cannot be a job of its own: refused.
  Result<TrainReport> Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                            const elastic::ProgressCallback& progress) override;
  void ForgetJob(const catalog::JobRunner& runner) override;
  void AddMetrics(elastic::MetricsText& text) override;
  bool is_elsewhere() const override { return true; }
  int64_t memory_bytes() const override { return here_->memory_bytes(); }
  JobCloser& closer() override { return here_->closer(); }
  std::string Describe() const override;

 private:
  struct Login {
    std::string url, secret;
  };
  PodCluster(std::unique_ptr<KubernetesAccess> access, Options options,
             std::unique_ptr<Cluster> here);
  // The template of a job's pods: that which the statement names, or ours.
  Result<std::string> TemplateFor(const plan::Pods& pods, const std::stop_token& stop) const;
  Status CheckFits(const Context& context, const JobConfig& config,
                   const std::string& pod_template) const;
  Status MakeJob(const Context& context, const JobConfig& config, const JobSecrets& secrets,
                 const std::string& pod_template, int64_t number, const std::string& uid);
  void Close(const JobKeeper::Job& job, const Status& why) EXCLUDES(mutex_);
  void CancelDeleted();
  void Forget(const JobConfig& config, const JobKeeper::Job& job);
  void KeepServersApart(const JobKeeper::Job& job, const plan::Strategy& strategy,
                        const std::stop_token& stop);
  Login LoginOf(const JobKeeper::Job& job) EXCLUDES(mutex_);
  Result<k8s::Owner> OwnerFor(const Context& context, const JobConfig& config,
                              const std::string& name, const std::string& secret,
                              const std::string& uid);

  const std::unique_ptr<KubernetesAccess> access_;
  const Options options_;
  const std::unique_ptr<Cluster> here_;
  Mutex mutex_;
  std::map<std::string, Login> logins_ GUARDED_BY(mutex_);  // by the uid of a job
  // Last: their threads use the rest.
  std::unique_ptr<JobKeeper> keeper_;
  std::unique_ptr<TrainingJobs> training_jobs_;
  std::jthread janitor_;
};

}  // namespace sluice::executor
